package conform;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** The adapter protocol over the generated message classes of kafka-clients: one JSON line in, one out. */
public final class Adapter {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        OutputStream out = new FileOutputStream(FileDescriptor.out);
        for (String line; (line = in.readLine()) != null; ) {
            if (line.isBlank()) {
                continue;
            }
            JsonNode asked;
            try {
                asked = JSON.readTree(line);
            } catch (JsonProcessingException notJson) {
                throw quit("not a JSON line: " + notJson.getOriginalMessage());
            }
            String op = asked.path("op").asText();
            if (op.equals("stop")) {
                return;
            }
            JsonNode answer;
            if (op.equals("start")) {
                if (asked.path("protocol").asInt() != 1) {
                    throw quit("speaks adapter protocol 1, asked for " + asked.path("protocol"));
                }
                answer = handshake();
            } else {
                answer = answer(op, asked);
            }
            byte[] text = JSON.writeValueAsBytes(answer);
            byte[] whole = Arrays.copyOf(text, text.length + 1);
            whole[text.length] = '\n';
            out.write(whole);
        }
    }

    private static Error quit(String why) {
        System.err.println("kafka-clients adapter: " + why);
        System.exit(2);
        return new AssertionError("exit does not return");
    }

    private static ObjectNode handshake() throws IOException {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        answer.put("protocol", 1).put("peer", "kafka-clients").put("version", MessageType.release());
        answer.put("language", "java");
        ObjectNode supports = answer.putObject("supports");
        for (MessageType type : MessageType.all()) {
            supports.putObject(type.name).put("decode", type.versions()).put("encode", type.versions());
        }
        answer.putObject("operations");
        return answer;
    }

    private static ObjectNode answer(String op, JsonNode asked) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        if (asked.has("id")) {
            answer.set("id", asked.get("id"));
        }
        try {
            String name = asked.path("message").asText();
            int version = asked.path("version").asInt(-1);
            MessageType type = MessageType.named(name);
            if (type == null) {
                throw new Unsupported("no message " + name);
            }
            if (version < type.lowest || version > type.highest) {
                throw new Unsupported(name + " has versions " + type.versions());
            }
            Part part = Part.of(asked.path("part").asText("body"), type, (short) version);
            switch (op) {
                case "decode" -> {
                    ByteBuffer bytes = ByteBuffer.wrap(Values.unhex(asked.path("bytes").asText()));
                    answer.set("value", part.toJson(part.read(bytes)));
                    answer.put("left", bytes.remaining());
                }
                case "encode" -> answer.put("bytes", HexFormat.of().formatHex(part.write(part.fromJson(asked.path("value")))));
                case "recode" -> {
                    ByteBuffer bytes = ByteBuffer.wrap(Values.unhex(asked.path("bytes").asText()));
                    answer.put("bytes", HexFormat.of().formatHex(part.write(part.read(bytes))));
                    answer.put("left", bytes.remaining());
                }
                default -> throw new Unsupported("no operation " + op);
            }
        } catch (Throwable thrown) {
            Throwable cause = thrown instanceof InvocationTargetException ? thrown.getCause() : thrown;
            answer.remove("value");
            if (cause instanceof Unsupported) {
                answer.put("unsupported", cause.getMessage());
            } else if (cause instanceof BadValue) {
                answer.put("error", "adapter: " + cause.getMessage());
            } else {
                // The library refuses by RuntimeException; an Error (memory, stack) is no refusal.
                answer.put(cause instanceof Error ? "panic" : "error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
        }
        return answer;
    }

    /** What a request is about: a body, a header, or a size with both; always at one version. */
    private record Part(Section header, Section body, boolean framed) {
        /** A message type at a version. */
        record Section(MessageType type, short version) {}

        /** What {@link #read} found; a part that was not asked for is null. */
        record Messages(Message header, Message body) {}

        static Part of(String part, MessageType type, short version) {
            Section body = new Section(type, version);
            if (part.equals("body")) {
                return new Part(null, body, false);
            }
            if (!part.equals("header") && !part.equals("frame")) {
                throw new Unsupported("no part " + part);
            }
            MessageType header = type.header();
            Section head = new Section(header, type.headerVersion(version));
            return part.equals("header") ? new Part(head, null, false) : new Part(head, body, true);
        }

        Messages read(ByteBuffer bytes) throws ReflectiveOperationException {
            int end = bytes.limit();
            if (framed) {
                int size = bytes.getInt();
                if (size < 0 || size > bytes.remaining()) {
                    throw new BadValue("frame size " + size + ", " + bytes.remaining() + " bytes follow");
                }
                bytes.limit(bytes.position() + size);
            }
            ByteBufferAccessor readable = new ByteBufferAccessor(bytes);
            Message first = header == null ? null : read(header, readable);
            Message second = body == null ? null : read(body, readable);
            bytes.limit(end);
            return new Messages(first, second);
        }

        private static Message read(Section section, ByteBufferAccessor readable) throws ReflectiveOperationException {
            Message message = section.type.instance();
            message.read(readable, section.version);
            return message;
        }

        byte[] write(Messages messages) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            int first = messages.header == null ? 0 : messages.header.size(cache, header.version);
            int second = messages.body == null ? 0 : messages.body.size(cache, body.version);
            ByteBuffer bytes = ByteBuffer.allocate((framed ? 4 : 0) + first + second);
            if (framed) {
                bytes.putInt(first + second);
            }
            ByteBufferAccessor writable = new ByteBufferAccessor(bytes);
            if (messages.header != null) {
                messages.header.write(writable, cache, header.version);
            }
            if (messages.body != null) {
                messages.body.write(writable, cache, body.version);
            }
            if (bytes.hasRemaining()) {
                throw new IllegalStateException("size() said " + bytes.capacity() + ", write() wrote " + bytes.position());
            }
            return bytes.array();
        }

        JsonNode toJson(Messages messages) throws ReflectiveOperationException {
            if (!framed) {
                Section section = header == null ? body : header;
                return section.type.struct.toJson(header == null ? messages.body : messages.header, section.version);
            }
            ObjectNode both = JsonNodeFactory.instance.objectNode();
            both.set("header", header.type.struct.toJson(messages.header, header.version));
            both.set("body", body.type.struct.toJson(messages.body, body.version));
            return both;
        }

        Messages fromJson(JsonNode value) throws ReflectiveOperationException {
            if (!framed) {
                Message message = (Message) (header == null ? body : header).type.struct.fromJson(value);
                return header == null ? new Messages(null, message) : new Messages(message, null);
            }
            value.fieldNames().forEachRemaining(name -> {
                if (!name.equals("header") && !name.equals("body")) {
                    throw new BadValue("a frame has header and body, not " + name);
                }
            });
            return new Messages(section(header, value.get("header")), section(body, value.get("body")));
        }

        private static Message section(Section section, JsonNode value) throws ReflectiveOperationException {
            return value == null ? section.type.instance() : (Message) section.type.struct.fromJson(value);
        }
    }

    /** Something the library does not have. */
    static final class Unsupported extends RuntimeException {
        Unsupported(String why) {
            super(why);
        }
    }

    /** Something this adapter was given that no Java value can hold, or that is not in the definition. */
    static final class BadValue extends RuntimeException {
        BadValue(String why) {
            super(why);
        }
    }
}
