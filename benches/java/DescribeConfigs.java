import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.kafka.common.message.DescribeConfigsResponseData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Times the generated classes of Apache Kafka's Java client on one DescribeConfigsResponse of version 4, read from the file
 * that is named:
 *
 * <pre>kafka-clients decode 53kB 120000 ns, at best 110000</pre>
 *
 * A time is the lower quartile of batches of calls, when the compiler has had its time; the collector's work is in the batches.
 * Called by the script other-languages.
 */
public final class DescribeConfigs {
    private static final short VERSION = 4;
    private static final int WARM_UP = 20_000;
    private static final int BATCHES = 400;
    private static final int CALLS = 20;

    /** What is decoded goes here, so that it is used as far as the compiler can tell. */
    private static volatile Object decoded;

    private DescribeConfigs() {}

    public static void main(String[] args) throws IOException {
        ByteBuffer message = ByteBuffer.wrap(Files.readAllBytes(Path.of(args[0])));
        DescribeConfigsResponseData response = decode(message);
        ByteBuffer out = ByteBuffer.allocate(message.capacity());
        encode(response, out);
        if (out.hasRemaining() || !out.flip().equals(message.rewind())) {
            throw new IllegalStateException("kafka-clients writes other bytes than it read");
        }
        measure("decode", message.capacity(), () -> decoded = decode(message));
        measure("encode", message.capacity(), () -> encode(response, out));
    }

    private static DescribeConfigsResponseData decode(ByteBuffer message) {
        return new DescribeConfigsResponseData(new ByteBufferAccessor(message.rewind()), VERSION);
    }

    /** As its own requests and responses are written: the size first, which fills the cache that writing takes lengths from. */
    private static void encode(DescribeConfigsResponseData response, ByteBuffer out) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        if (response.size(cache, VERSION) != out.capacity()) {
            throw new IllegalStateException("another size than before");
        }
        response.write(new ByteBufferAccessor(out.clear()), cache, VERSION);
    }

    private static void measure(String name, int size, Runnable operation) {
        for (int call = 0; call < WARM_UP; call++) {
            operation.run();
        }
        long[] times = new long[BATCHES];
        for (int batch = 0; batch < BATCHES; batch++) {
            long start = System.nanoTime();
            for (int call = 0; call < CALLS; call++) {
                operation.run();
            }
            times[batch] = (System.nanoTime() - start) / CALLS;
        }
        Arrays.sort(times);
        System.out.printf("kafka-clients %s %dkB %d ns, at best %d%n", name, size / 1000, times[BATCHES / 4], times[0]);
    }
}
