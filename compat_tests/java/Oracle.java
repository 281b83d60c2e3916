import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.errors.InvalidMetadataException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;

/**
 * What Apache Kafka's own classes say: a filter over JSON lines, one answer a line, in order.
 *
 * <p>A line names an operation in "op". Whatever goes wrong inside Kafka's classes is an answer
 * {"error": "class: message"}, and the filter goes on. It flushes when no further line waits.
 */
public final class Oracle {
    static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    static final HexFormat HEX = HexFormat.of();

    private final Messages messages;
    private final Batches batches;

    private Oracle() throws IOException {
        messages = Messages.onClassPath();
        batches = new Batches(messages);
    }

    public static void main(String[] arguments) throws IOException {
        Oracle oracle = new Oracle();
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        OutputStream out = new java.io.BufferedOutputStream(System.out, 1 << 20);
        String line = in.readLine();
        while (line != null) {
            out.write(mapper.writeValueAsBytes(oracle.answer(mapper.readTree(line))));
            out.write('\n');
            if (!in.ready()) {
                out.flush();
            }
            line = in.readLine();
        }
        out.flush();
    }

    private JsonNode answer(JsonNode question) {
        try {
            return operate(question);
        } catch (Throwable error) {
            Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
            String said = cause.getClass().getSimpleName() + ": " + cause.getMessage();
            return JSON.objectNode().put("error", said);
        }
    }

    private JsonNode operate(JsonNode question) throws Exception {
        return switch (question.get("op").asText()) {
            case "catalogue" -> messages.catalogue();
            case "errors" -> errors();
            case "encode" -> encode(question);
            case "decode" -> decode(question);
            case "convert" -> convert(question);
            case "random" -> random(question);
            case "random batches" -> batches.random(
                    question.get("seed").asLong(), question.get("count").asInt());
            case "read batches" -> batches.read(bytes(question));
            case "clean" -> Cleaning.clean(question);
            default -> throw new IllegalArgumentException("no such operation");
        };
    }

    /** JSON to bytes, and what the bytes say when they are read again. */
    private JsonNode encode(JsonNode question) throws ReflectiveOperationException {
        Messages.Kind kind = kind(question);
        short version = version(question);
        byte[] bytes = kind.write(kind.fromJson(question.get("json"), version), version);
        ObjectNode answer = JSON.objectNode().put("hex", HEX.formatHex(bytes));
        answer.set("json", kind.toJson(kind.read(ByteBuffer.wrap(bytes), version), version));
        return answer;
    }

    /** Bytes to JSON, how many bytes were left, and the bytes as Kafka itself writes them. */
    private JsonNode decode(JsonNode question) throws ReflectiveOperationException {
        ByteBuffer buffer = ByteBuffer.wrap(bytes(question));
        Message message = kind(question).read(buffer, version(question));
        ObjectNode answer = described(kind(question), message, version(question));
        return answer.put("left", buffer.remaining());
    }

    /** Reads bytes in one version, and writes what they said in another one. */
    private JsonNode convert(JsonNode question) throws ReflectiveOperationException {
        Messages.Kind kind = kind(question);
        Message message = kind.read(ByteBuffer.wrap(bytes(question)), version(question));
        Messages.dropUnknownTags(message);
        byte[] bytes = kind.write(message, (short) question.get("to").asInt());
        return JSON.objectNode().put("hex", HEX.formatHex(bytes));
    }

    private JsonNode random(JsonNode question) throws ReflectiveOperationException {
        Messages.Kind kind = kind(question);
        short version = version(question);
        RandomWire random = new RandomWire(question.get("seed").asLong());
        ArrayNode values = JSON.arrayNode();
        for (int left = question.get("count").asInt(); left > 0; left--) {
            byte[] wire = random.message(kind.schema(version));
            ByteBuffer buffer = ByteBuffer.wrap(wire);
            Message message = kind.read(buffer, version);
            if (buffer.hasRemaining()) {
                throw new IllegalStateException("the generator's bytes were not all read");
            }
            ObjectNode value = described(kind, message, version);
            values.add(value.put("wire", HEX.formatHex(wire)));
        }
        return JSON.objectNode().set("values", values);
    }

    private static ObjectNode described(Messages.Kind kind, Message message, short version)
            throws ReflectiveOperationException {
        Messages.dropUnknownTags(message);
        ObjectNode answer = JSON.objectNode();
        answer.put("hex", HEX.formatHex(kind.write(message, version)));
        answer.set("json", kind.toJson(message, version));
        return answer;
    }

    private static JsonNode errors() {
        ArrayNode all = JSON.arrayNode();
        for (Errors error : Errors.values()) {
            all.addObject()
                    .put("code", error.code())
                    .put("name", error.name())
                    .put("message", error.message())
                    .put("retriable", error.exception() instanceof RetriableException)
                    .put("invalid_metadata", error.exception() instanceof InvalidMetadataException);
        }
        return JSON.objectNode().set("errors", all);
    }

    private Messages.Kind kind(JsonNode question) {
        return messages.kind(question.get("message").asText());
    }

    private static short version(JsonNode question) {
        return (short) question.get("version").asInt();
    }

    private static byte[] bytes(JsonNode question) {
        return HEX.parseHex(question.get("hex").asText());
    }
}
