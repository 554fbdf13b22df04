package conform;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.UUID;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Message;

/** Java values of message fields to and from the suite's JSON. */
final class Values {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    /** From here on a JSON number is not exact in every reader. */
    private static final long EXACT = 1L << 53;

    static JsonNode toJson(Object value, short version) throws ReflectiveOperationException {
        if (value == null) {
            return NODES.nullNode();
        } else if (value instanceof Boolean b) {
            return NODES.booleanNode(b);
        } else if (value instanceof Double d) {
            return Double.isFinite(d) ? NODES.numberNode(d) : NODES.textNode(d.toString());
        } else if (value instanceof Number n) {
            long number = n.longValue();
            return number > EXACT || number < -EXACT ? NODES.textNode(Long.toString(number)) : NODES.numberNode(number);
        } else if (value instanceof String s) {
            return NODES.textNode(s);
        } else if (value instanceof Uuid id) {
            return NODES.textNode(new UUID(id.getMostSignificantBits(), id.getLeastSignificantBits()).toString());
        } else if (value instanceof byte[] bytes) {
            return hex(bytes);
        } else if (value instanceof ByteBuffer buffer) {
            return hex(copy(buffer));
        } else if (value.getClass().getSimpleName().equals("MemoryRecords")) {
            return hex(copy((ByteBuffer) value.getClass().getMethod("buffer").invoke(value)));
        } else if (value instanceof Collection<?> elements) {
            ArrayNode array = NODES.arrayNode();
            for (Object element : elements) {
                array.add(toJson(element, version));
            }
            return array;
        } else if (value instanceof Message struct) {
            return StructType.of(struct).toJson(struct, version);
        }
        throw new Adapter.Unsupported("no JSON form of " + value.getClass());
    }

    /** A value for a setter with a parameter of that type. */
    static Object fromJson(JsonNode json, Type type) throws ReflectiveOperationException {
        Class<?> plain = type instanceof Class<?> c ? c : (Class<?>) ((ParameterizedType) type).getRawType();
        if (json.isNull()) {
            if (plain.isPrimitive()) {
                throw new Adapter.BadValue("null is no " + plain);
            }
            return null;
        } else if (plain == boolean.class || plain == Boolean.class) {
            if (!json.isBoolean()) {
                throw new Adapter.BadValue("not a boolean: " + json);
            }
            return json.booleanValue();
        } else if (plain == byte.class || plain == Byte.class) {
            return (byte) integer(json, Byte.MIN_VALUE, Byte.MAX_VALUE);
        } else if (plain == short.class || plain == Short.class) {
            return (short) integer(json, Short.MIN_VALUE, Short.MAX_VALUE);
        } else if (plain == int.class || plain == Integer.class) {
            return (int) integer(json, Integer.MIN_VALUE, Integer.MAX_VALUE);
        } else if (plain == long.class || plain == Long.class) {
            return integer(json, Long.MIN_VALUE, Long.MAX_VALUE);
        } else if (plain == double.class || plain == Double.class) {
            return real(json);
        } else if (plain == String.class) {
            return text(json);
        } else if (plain == Uuid.class) {
            return uuid(json);
        } else if (plain == byte[].class) {
            return bytes(json);
        } else if (plain == ByteBuffer.class) {
            return ByteBuffer.wrap(bytes(json));
        } else if (plain.getSimpleName().equals("BaseRecords")) {
            // By name: the package of the record classes differs between releases.
            Class<?> records = Class.forName(plain.getPackageName() + ".MemoryRecords");
            return records.getMethod("readableRecords", ByteBuffer.class).invoke(null, ByteBuffer.wrap(bytes(json)));
        } else if (Collection.class.isAssignableFrom(plain)) {
            return collection(json, plain, StructType.element(type));
        }
        return StructType.of(plain).fromJson(json);
    }

    @SuppressWarnings("unchecked")
    private static Object collection(JsonNode json, Class<?> plain, Class<?> element) throws ReflectiveOperationException {
        if (!json.isArray()) {
            throw new Adapter.BadValue("not an array: " + json);
        }
        Collection<Object> elements =
            plain.isInterface() ? new ArrayList<>() : (Collection<Object>) plain.getConstructor(int.class).newInstance(json.size());
        int index = 0;
        for (JsonNode one : json) {
            try {
                elements.add(fromJson(one, element));
            } catch (Adapter.BadValue bad) {
                throw new Adapter.BadValue("[" + index + "] " + bad.getMessage());
            }
            index++;
        }
        return elements;
    }

    private static long integer(JsonNode json, long lowest, long highest) {
        long number;
        if (json.isIntegralNumber() && json.canConvertToLong()) {
            number = json.longValue();
        } else if (json.isTextual()) {
            try {
                number = Long.parseLong(json.textValue());
            } catch (NumberFormatException no) {
                throw new Adapter.BadValue("not an integer: " + json);
            }
        } else {
            throw new Adapter.BadValue("not an integer: " + json);
        }
        if (number < lowest || number > highest) {
            throw new Adapter.BadValue(number + " is outside of " + lowest + " to " + highest);
        }
        return number;
    }

    private static double real(JsonNode json) {
        if (json.isNumber()) {
            return json.doubleValue();
        }
        try {
            return Double.parseDouble(json.asText());
        } catch (NumberFormatException no) {
            throw new Adapter.BadValue("not a number: " + json);
        }
    }

    private static String text(JsonNode json) {
        if (json.isTextual()) {
            return json.textValue();
        }
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes(json))).toString();
        } catch (CharacterCodingException notUtf8) {
            throw new Adapter.Unsupported("a Java string holds no bytes that are not UTF-8");
        }
    }

    private static Uuid uuid(JsonNode json) {
        String text = json.asText();
        if (text.length() == 22) {
            return Uuid.fromString(text);
        }
        if (!text.matches("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")) {
            throw new Adapter.BadValue("not a uuid: " + json);
        }
        UUID id = UUID.fromString(text);
        return new Uuid(id.getMostSignificantBits(), id.getLeastSignificantBits());
    }

    private static byte[] bytes(JsonNode json) {
        if (!json.isObject() || json.size() != 1 || !json.path("hex").isTextual()) {
            throw new Adapter.BadValue("neither text nor {\"hex\": ...}: " + json);
        }
        return unhex(json.get("hex").textValue());
    }

    /** Bytes of hex text, which may hold spaces. */
    static byte[] unhex(String text) {
        try {
            return HexFormat.of().parseHex(text.replace(" ", ""));
        } catch (IllegalArgumentException no) {
            throw new Adapter.BadValue("not hex: " + no.getMessage());
        }
    }

    private static ObjectNode hex(byte[] bytes) {
        return NODES.objectNode().put("hex", HexFormat.of().formatHex(bytes));
    }

    private static byte[] copy(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }
}
