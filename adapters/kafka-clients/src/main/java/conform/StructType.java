package conform;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/**
 * A generated structure: the definition's field names beside the accessors. Values go through the accessors and not through the
 * generated JSON converters, which drop unknown tags and refuse some values before the codec sees them.
 */
final class StructType {
    private static final Map<Class<?>, StructType> KNOWN = new HashMap<>();

    /** A field: when it exists and how it is reached. */
    private record Field(Versions versions, Method getter, Method setter) {
        Type type() {
            return setter.getGenericParameterTypes()[0];
        }
    }

    /** A range as the definitions write it: "0-4", "3+", "2". */
    private record Versions(int lowest, int highest) {
        static Versions parse(String text) {
            if (text.equals("none")) {
                return new Versions(1, 0);
            }
            if (text.endsWith("+")) {
                return new Versions(Integer.parseInt(text.substring(0, text.length() - 1)), Short.MAX_VALUE);
            }
            String[] ends = text.split("-");
            return new Versions(Integer.parseInt(ends[0]), Integer.parseInt(ends[ends.length - 1]));
        }

        boolean contain(short version) {
            return lowest <= version && version <= highest;
        }
    }

    private final Constructor<?> constructor;
    private final Map<String, Field> fields = new LinkedHashMap<>();

    private StructType(Class<?> data) throws NoSuchMethodException {
        constructor = data.getConstructor();
    }

    /** The structure of that class; what it holds is found by the types of its setters. */
    static StructType of(Class<?> data, JsonNode definitions, JsonNode common) throws ReflectiveOperationException {
        StructType known = KNOWN.get(data);
        if (known != null) {
            return known;
        }
        StructType struct = new StructType(data);
        KNOWN.put(data, struct);
        Map<String, Method> setters = new HashMap<>();
        for (Method method : data.getMethods()) {
            if (method.getName().startsWith("set") && method.getParameterCount() == 1 && !method.isBridge()) {
                setters.put(method.getName(), method);
            }
        }
        for (JsonNode definition : definitions) {
            String name = definition.get("name").asText();
            String java = Character.toLowerCase(name.charAt(0)) + name.substring(1);
            Method setter = setters.get("set" + Character.toUpperCase(java.charAt(0)) + java.substring(1));
            if (setter == null) {
                throw new NoSuchMethodException(data.getName() + " has no setter for " + name);
            }
            Field field = new Field(Versions.parse(definition.get("versions").asText()), data.getMethod(java), setter);
            struct.fields.put(name, field);
            Class<?> inner = element(field.type());
            if (Message.class.isAssignableFrom(inner)) {
                of(inner, inner(definition, common), common);
            }
        }
        return struct;
    }

    private static JsonNode inner(JsonNode definition, JsonNode common) {
        if (definition.has("fields")) {
            return definition.get("fields");
        }
        String type = definition.get("type").asText().replace("[]", "");
        for (JsonNode struct : common) {
            if (struct.get("name").asText().equals(type)) {
                return struct.get("fields");
            }
        }
        throw new IllegalStateException("no structure " + type);
    }

    /** The structure a value is of. */
    static StructType of(Message value) {
        return KNOWN.get(value.getClass());
    }

    /** The structure of a class that was seen in a message. */
    static StructType of(Class<?> data) {
        return KNOWN.get(data);
    }

    Object instance() throws ReflectiveOperationException {
        return constructor.newInstance();
    }

    /** The fields that exist at that version, and the unknown tags. */
    ObjectNode toJson(Message value, short version) throws ReflectiveOperationException {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        for (Map.Entry<String, Field> entry : fields.entrySet()) {
            if (entry.getValue().versions.contain(version)) {
                json.set(entry.getKey(), Values.toJson(entry.getValue().getter.invoke(value), version));
            }
        }
        List<RawTaggedField> tags = value.unknownTaggedFields();
        if (!tags.isEmpty()) {
            ArrayNode list = json.putArray("_tags");
            for (RawTaggedField tag : tags) {
                // The library holds the number signed; on the wire it has no sign.
                list.addObject().put("tag", Integer.toUnsignedLong(tag.tag())).put("hex", HexFormat.of().formatHex(tag.data()));
            }
        }
        return json;
    }

    /** An instance with the fields that the JSON has; the others keep their defaults. */
    Object fromJson(JsonNode json) throws ReflectiveOperationException {
        if (!json.isObject()) {
            throw new Adapter.BadValue("a structure is an object, not " + json.getNodeType());
        }
        Message value = (Message) instance();
        for (Map.Entry<String, JsonNode> entry : json.properties()) {
            String name = entry.getKey();
            if (name.equals("_tags")) {
                addTags(value.unknownTaggedFields(), entry.getValue());
                continue;
            }
            Field field = fields.get(name);
            if (field == null) {
                throw new Adapter.BadValue("no field " + name);
            }
            try {
                field.setter.invoke(value, Values.fromJson(entry.getValue(), field.type()));
            } catch (Adapter.BadValue bad) {
                throw new Adapter.BadValue(name + ": " + bad.getMessage());
            } catch (InvocationTargetException refused) {
                throw new IllegalArgumentException(name + ": " + refused.getCause().getMessage(), refused.getCause());
            }
        }
        return value;
    }

    private static void addTags(Collection<RawTaggedField> tags, JsonNode json) {
        for (JsonNode tag : json) {
            tags.add(new RawTaggedField((int) tag.path("tag").asLong(), Values.unhex(tag.path("hex").asText())));
        }
    }

    /** The element type of a list or keyed collection, or the type itself. */
    static Class<?> element(Type type) {
        if (type instanceof ParameterizedType list) {
            return (Class<?>) list.getActualTypeArguments()[0];
        }
        Class<?> plain = (Class<?>) type;
        if (Collection.class.isAssignableFrom(plain)) {
            // XCollection extends ImplicitLinkedHashMultiCollection<X>
            return (Class<?>) ((ParameterizedType) plain.getGenericSuperclass()).getActualTypeArguments()[0];
        }
        return plain;
    }
}
