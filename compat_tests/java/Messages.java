import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarFile;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.record.internal.MemoryRecords;

/** Every message of which the class path holds a generated class and its JSON converter. */
final class Messages {
    private static final String CONVERTER = "JsonConverter";
    private static final List<String> SUFFIXES =
            List.of("RequestData", "ResponseData", "HeaderData");

    private final Map<String, Kind> kinds = new TreeMap<>();

    static Messages onClassPath() throws IOException {
        Messages messages = new Messages();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (new File(entry).getName().matches("kafka-.*\\.jar")) {
                messages.addAllOf(entry);
            }
        }
        return messages;
    }

    private void addAllOf(String jar) throws IOException {
        try (JarFile file = new JarFile(jar)) {
            file.stream()
                    .map(entry -> entry.getName())
                    .filter(name -> name.endsWith(CONVERTER + ".class") && !name.contains("$"))
                    .map(name -> name.replace('/', '.').replace(CONVERTER + ".class", ""))
                    .forEach(this::add);
        }
    }

    private void add(String className) {
        try {
            Class<?> data = Class.forName(className);
            String name = data.getSimpleName();
            // The generator appends Data to these, and to no other name in the schemas.
            if (SUFFIXES.stream().anyMatch(name::endsWith)) {
                name = name.substring(0, name.length() - "Data".length());
            }
            Kind kind = new Kind(name, data, Class.forName(className + CONVERTER));
            if (kind.highest >= kind.lowest) {
                kinds.put(name, kind);
            }
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    Kind kind(String name) {
        Kind kind = kinds.get(name);
        if (kind == null) {
            throw new IllegalArgumentException("no message named " + name);
        }
        return kind;
    }

    JsonNode catalogue() {
        ArrayNode all = Oracle.JSON.arrayNode();
        kinds.values().forEach(kind -> all.add(kind.described()));
        return Oracle.JSON.objectNode().set("messages", all);
    }

    /** Kafka keeps tags that it does not know, and writes them again; here they are gone. */
    static void dropUnknownTags(Message message) throws ReflectiveOperationException {
        message.unknownTaggedFields().clear();
        for (Field field : fields(message)) {
            Object value = field.get(message);
            if (value instanceof Message part) {
                dropUnknownTags(part);
            } else if (value instanceof Collection<?> collection) {
                for (Object element : collection) {
                    if (element instanceof Message part) {
                        dropUnknownTags(part);
                    }
                }
            }
        }
    }

    /** Writes the bytes of record batches, of which Kafka's converters say nothing. */
    private static void addRecords(Message message, JsonNode json)
            throws ReflectiveOperationException {
        for (Field field : fields(message)) {
            Object value = field.get(message);
            JsonNode member = json.path(field.getName());
            if (value instanceof MemoryRecords records) {
                ByteBuffer buffer = records.buffer();
                byte[] bytes = new byte[buffer.remaining()];
                buffer.get(bytes);
                ((ObjectNode) json).set(field.getName(), BinaryNode.valueOf(bytes));
            } else if (value instanceof Message part && member.isObject()) {
                addRecords(part, member);
            } else if (value instanceof Collection<?> collection && member.isArray()) {
                Iterator<JsonNode> elements = member.elements();
                for (Object element : collection) {
                    JsonNode described = elements.next();
                    if (element instanceof Message part) {
                        addRecords(part, described);
                    }
                }
            }
        }
    }

    private static List<Field> fields(Message message) {
        List<Field> fields = new ArrayList<>();
        for (Field field : message.getClass().getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers()) && !field.getType().isPrimitive()) {
                field.setAccessible(true);
                fields.add(field);
            }
        }
        return fields;
    }

    /** One message, for all its versions. */
    static final class Kind {
        final String name;
        final short lowest;
        final short highest;
        private final Class<?> data;
        private final Class<?> converter;
        private final Schema[] schemas;

        Kind(String name, Class<?> data, Class<?> converter) throws ReflectiveOperationException {
            this.name = name;
            this.data = data;
            this.converter = converter;
            lowest = data.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
            highest = data.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
            schemas = (Schema[]) data.getField("SCHEMAS").get(null);
        }

        Schema schema(short version) {
            return schemas[version];
        }

        Message read(ByteBuffer buffer, short version) throws ReflectiveOperationException {
            Readable readable = new ByteBufferAccessor(buffer);
            return (Message) data.getConstructor(Readable.class, short.class)
                    .newInstance(readable, version);
        }

        byte[] write(Message message, short version) {
            ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            return bytes;
        }

        Message fromJson(JsonNode json, short version) throws ReflectiveOperationException {
            return (Message) converter.getMethod("read", JsonNode.class, short.class)
                    .invoke(null, json, version);
        }

        JsonNode toJson(Message message, short version) throws ReflectiveOperationException {
            JsonNode json = (JsonNode) converter
                    .getMethod("write", data, short.class, boolean.class)
                    .invoke(null, message, version, true);
            addRecords(message, json);
            return json;
        }

        JsonNode described() {
            ObjectNode node = Oracle.JSON.objectNode();
            node.put("name", name).put("lowest", lowest).put("highest", highest);
            node.put("key", apiKey());
            for (short version = lowest; version <= highest; version++) {
                if (hasTags(schemas[version])) {
                    return node.put("flexible", version);
                }
            }
            return node.putNull("flexible");
        }

        private Short apiKey() {
            try {
                Object message = data.getConstructor().newInstance();
                short key = (short) data.getMethod("apiKey").invoke(message);
                return key < 0 ? null : key;
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }

        private static boolean hasTags(Schema schema) {
            int last = schema.numFields() - 1;
            return last >= 0 && schema.get(last).def.type instanceof TaggedFields;
        }
    }
}
