import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.CompactArrayOf;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Random bytes that are a message of a given schema.
 *
 * <p>Written without Kafka's writers, so that what those never write comes, too: defaults that are
 * sent, unknown tags, tags out of order, padded varints, odd forms of null and true.
 */
final class RandomWire {
    private static final int UNKNOWN_TAG_FROM = 10_000;
    private static final String[] TEXTS = {
        "", "a", "topic", "é", "ß→\u00a0", "日本語", "\ud83d\ude80", "a\ud834\udd1eb", "\"\\/\b\t\r\n\0\u007f",
        "\u2028\uffff\ufffd", "x".repeat(127), "ä".repeat(64), "\ud83d\ude80".repeat(40), "null"
    };
    private static final long[] NUMBERS = {
        0, 0, 0, 1, -1, -1, 2, 127, 128, -128, 255, 32767, -32768, 65535, Integer.MAX_VALUE,
        Integer.MIN_VALUE, 0xffff_ffffL, Long.MAX_VALUE, Long.MIN_VALUE
    };
    private static final double[] DOUBLES = {
        0.0, -0.0, 1.0, -1.5, 0.1, 1e300, 1e10, 123456789.125, Double.MAX_VALUE, Double.MIN_VALUE
    };

    private final Random random;
    private ByteArrayOutputStream out = new ByteArrayOutputStream();
    /** Whether this message holds almost nothing, so that its fields are at their defaults. */
    private boolean plain;
    /** Whether this message uses forms that Kafka reads and never writes. */
    private boolean loose;

    RandomWire(long seed) {
        random = new Random(seed);
    }

    byte[] message(Schema schema) {
        out.reset();
        plain = one(8);
        loose = one(4);
        struct(schema, 0);
        return out.toByteArray();
    }

    private void struct(Schema schema, int depth) {
        for (BoundField field : schema.fields()) {
            value(field.def.type, depth);
        }
    }

    private void value(Type type, int depth) {
        if (type instanceof TaggedFields tags) {
            tags(tags, depth);
        } else if (type instanceof Schema schema) {
            if (schema.isNullable() && !present(one(3))) {
                return;
            }
            struct(schema, depth + 1);
        } else if (type.isArray()) {
            array(type, depth);
        } else {
            primitive(type);
        }
    }

    /** The byte before a nullable struct; Kafka looks only at its sign. */
    private boolean present(boolean isNull) {
        if (isNull) {
            out.write(loose ? -1 - random.nextInt(128) : -1);
        } else {
            out.write(loose ? random.nextInt(128) : 1);
        }
        return !isNull;
    }

    private void array(Type type, int depth) {
        boolean compact = type instanceof CompactArrayOf;
        if (type.isNullable() && one(4)) {
            noLength(compact ? 0 : 4);
            return;
        }
        Type element = type.arrayElementType().orElseThrow();
        int count = plain || depth > 4 ? random.nextInt(2) : random.nextInt(6 - depth);
        if (depth == 0 && !plain && one(40)) {
            count = 200; // the count takes two bytes in compact form
        }
        if (plain && one(2)) {
            count = 0;
        }
        length(compact ? 0 : 4, count);
        for (int left = count; left > 0; left--) {
            value(element, depth + 1);
        }
    }

    private void tags(TaggedFields type, int depth) {
        List<Runnable> entries = new ArrayList<>();
        type.fields().entrySet().stream()
                .sorted(Map.Entry.comparingByKey())
                .filter(entry -> !one(3))
                .forEach(entry -> entries.add(() -> known(entry.getKey(), entry.getValue(), depth)));
        if (one(8)) {
            int tag = UNKNOWN_TAG_FROM + random.nextInt(Integer.MAX_VALUE - UNKNOWN_TAG_FROM);
            byte[] unknown = bytes();
            entries.add(() -> entry(tag, unknown));
        }
        if (loose) {
            Collections.shuffle(entries, random);
        }
        varint(entries.size());
        entries.forEach(Runnable::run);
    }

    private void known(int tag, Field field, int depth) {
        ByteArrayOutputStream outer = out;
        out = new ByteArrayOutputStream();
        if (field.type instanceof Schema schema && schema.isNullable()) {
            // Inside a tag the mark of a nullable struct is a varint.
            if (one(3)) {
                out.write(0);
            } else {
                out.write(1);
                struct(schema, depth + 1);
            }
        } else {
            value(field.type, depth + 1);
        }
        byte[] content = out.toByteArray();
        out = outer;
        entry(tag, content);
    }

    private void entry(int tag, byte[] content) {
        varint(tag);
        varint(content.length);
        out.writeBytes(content);
    }

    private void primitive(Type type) {
        if (type == Type.BOOLEAN) {
            out.write(loose && one(2) ? random.nextInt(256) : random.nextInt(2));
        } else if (type == Type.INT8) {
            fixed(1, number());
        } else if (type == Type.INT16 || type == Type.UINT16) {
            fixed(2, number());
        } else if (type == Type.INT32 || type == Type.UNSIGNED_INT32) {
            fixed(4, number());
        } else if (type == Type.INT64) {
            fixed(8, number());
        } else if (type == Type.FLOAT64) {
            fixed(8, Double.doubleToRawLongBits(DOUBLES[random.nextInt(DOUBLES.length)]));
        } else if (type == Type.UUID) {
            boolean zero = plain || one(4);
            fixed(8, zero ? 0 : random.nextLong());
            fixed(8, zero ? 0 : random.nextLong());
        } else {
            sized(type);
        }
    }

    private void sized(Type type) {
        boolean isText = type == Type.STRING || type == Type.NULLABLE_STRING
                || type == Type.COMPACT_STRING || type == Type.COMPACT_NULLABLE_STRING;
        boolean compact = type.toString().startsWith("COMPACT_");
        int width = compact ? 0 : isText ? 2 : 4;
        if (type.isNullable() && one(4)) {
            noLength(width);
            return;
        }
        byte[] content = isText ? text() : bytes();
        length(width, content.length);
        out.writeBytes(content);
    }

    private void length(int width, int length) {
        if (width == 0) {
            varint(length + 1);
        } else {
            fixed(width, length);
        }
    }

    private void noLength(int width) {
        if (width == 0) {
            varint(0);
        } else {
            fixed(width, loose ? -1 - random.nextInt(1 << 15) : -1);
        }
    }

    private void fixed(int width, long value) {
        byte[] wide = ByteBuffer.allocate(8).putLong(value).array();
        out.write(wide, 8 - width, width);
    }

    /** An unsigned varint; a loose one may have bytes that say nothing, up to the five allowed. */
    private void varint(int value) {
        int bytes = 1;
        for (int rest = value >>> 7; rest != 0; rest >>>= 7) {
            bytes++;
        }
        if (loose && one(4)) {
            bytes += random.nextInt(6 - bytes);
        }
        for (int left = value; bytes > 0; bytes--, left >>>= 7) {
            out.write(left & 0x7f | (bytes > 1 ? 0x80 : 0));
        }
    }

    private long number() {
        if (plain) {
            return -random.nextInt(2);
        }
        return one(3) ? random.nextLong() : NUMBERS[random.nextInt(NUMBERS.length)];
    }

    private byte[] text() {
        if (plain) {
            return new byte[0];
        }
        if (one(2000)) {
            return "x".repeat(Short.MAX_VALUE).getBytes(StandardCharsets.UTF_8);
        }
        String text = TEXTS[random.nextInt(TEXTS.length)] + TEXTS[random.nextInt(9)];
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private byte[] bytes() {
        byte[] bytes = new byte[plain ? 0 : one(10) ? 200 : random.nextInt(20)];
        random.nextBytes(bytes);
        return bytes;
    }

    private boolean one(int in) {
        return random.nextInt(in) == 0;
    }
}
