package conform;

import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.jar.JarFile;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.Message;

/** A message of the jar: its definition ({@code common/message/*.json}) and its generated class. */
final class MessageType {
    private static final String FOLDER = "common/message/";
    private static final JsonMapper DEFINITIONS = JsonMapper.builder().enable(JsonReadFeature.ALLOW_JAVA_COMMENTS).build();
    private static final Map<String, MessageType> FOUND = new HashMap<>();

    /** The definition's name, as {@code DescribeConfigsRequest}. */
    final String name;
    /** The versions of the generated class. */
    final short lowest;
    final short highest;
    /** The fields of the message itself. */
    final StructType struct;
    private final JsonNode definition;

    private MessageType(JsonNode definition, Class<?> data) throws ReflectiveOperationException {
        this.name = definition.get("name").asText();
        this.definition = definition;
        this.lowest = data.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
        this.highest = data.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
        this.struct = StructType.of(data, definition.get("fields"), definition.path("commonStructs"));
    }

    /** The message of that name, or null if the jar has none (or none with a version left). */
    static MessageType named(String name) {
        return FOUND.computeIfAbsent(name, MessageType::load);
    }

    private static MessageType load(String name) {
        // Letters only: the name becomes a part of a class name and a path.
        if (!name.matches("[A-Za-z0-9]+")) {
            return null;
        }
        try (InputStream text = MessageType.class.getClassLoader().getResourceAsStream(FOLDER + name + ".json")) {
            if (text == null) {
                return null;
            }
            JsonNode definition = DEFINITIONS.readTree(text);
            if (definition.path("validVersions").asText().equals("none")) {
                return null;
            }
            return new MessageType(definition, Class.forName("org.apache.kafka.common.message." + name + "Data"));
        } catch (ClassNotFoundException notGenerated) {
            return null;
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        } catch (ReflectiveOperationException other) {
            throw new IllegalStateException(name, other);
        }
    }

    /** Every message of the jar, by name. */
    static List<MessageType> all() throws IOException {
        Path jar = Path.of(URI.create(ApiMessageType.class.getProtectionDomain().getCodeSource().getLocation().toString()));
        TreeSet<String> names = new TreeSet<>();
        try (JarFile file = new JarFile(jar.toFile())) {
            file.stream().map(entry -> entry.getName()).filter(path -> path.startsWith(FOLDER) && path.endsWith(".json"))
                .forEach(path -> names.add(path.substring(FOLDER.length(), path.length() - ".json".length())));
        }
        List<MessageType> types = new ArrayList<>();
        for (String name : names) {
            MessageType type = named(name);
            if (type != null) {
                types.add(type);
            }
        }
        return types;
    }

    /** The release, as the jar itself says. */
    static String release() throws IOException {
        Properties properties = new Properties();
        try (InputStream text = MessageType.class.getClassLoader().getResourceAsStream("kafka/kafka-version.properties")) {
            properties.load(text);
        }
        return properties.getProperty("version");
    }

    /** The versions in Kafka's notation. */
    String versions() {
        return lowest == highest ? Short.toString(lowest) : lowest + "-" + highest;
    }

    /** An instance that holds the defaults. */
    Message instance() throws ReflectiveOperationException {
        return (Message) struct.instance();
    }

    /** The header that goes before this message. */
    MessageType header() {
        return switch (definition.path("type").asText()) {
            case "request" -> named("RequestHeader");
            case "response" -> named("ResponseHeader");
            default -> throw new Adapter.Unsupported(name + " has no header");
        };
    }

    /** Which version of that header, as the library says. */
    short headerVersion(short version) {
        ApiMessageType api = ApiMessageType.fromApiKey((short) definition.get("apiKey").asInt());
        boolean request = definition.get("type").asText().equals("request");
        return request ? api.requestHeaderVersion(version) : api.responseHeaderVersion(version);
    }
}
