import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/** Record batches of format v2: random ones as Kafka builds them, and any bytes as Kafka reads them. */
final class Batches {
    private static final CompressionType[] CODECS = CompressionType.values();
    private static final long[] TIMES = {-1, 0, 1, 1_700_000_000_000L, Long.MAX_VALUE};
    private static final String[] HEADER_KEYS = {"", "k", "traceparent", "\u00e9\u65e5\ud83d\ude80"};

    private final Messages messages;

    Batches(Messages messages) {
        this.messages = messages;
    }

    JsonNode random(long seed, int count) throws ReflectiveOperationException {
        Random random = new Random(seed);
        ArrayNode values = Oracle.JSON.arrayNode();
        for (int left = count; left > 0; left--) {
            ByteBuffer buffer = build(random, seed);
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            ObjectNode value = values.addObject().put("hex", Oracle.HEX.formatHex(bytes));
            value.setAll((ObjectNode) read(bytes));
        }
        return Oracle.JSON.objectNode().set("values", values);
    }

    /** All whole batches with their records; "error" in place of what Kafka would not go on from. */
    JsonNode read(byte[] bytes) {
        ArrayNode batches = Oracle.JSON.arrayNode();
        ObjectNode answer = Oracle.JSON.objectNode();
        answer.set("batches", batches);
        try {
            for (MutableRecordBatch batch :
                    MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
                batch.ensureValid();
                ObjectNode node = batches.addObject();
                header(batch, node);
                ArrayNode records = node.putArray("records");
                for (Record record : batch) {
                    record(record, records.addObject());
                }
            }
        } catch (RuntimeException error) {
            answer.put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
        }
        return answer;
    }

    private static void header(MutableRecordBatch batch, ObjectNode node) {
        node.put("base_offset", batch.baseOffset())
                .put("last_offset", batch.lastOffset())
                .put("next_offset", batch.nextOffset())
                .put("leader_epoch", batch.partitionLeaderEpoch())
                .put("magic", batch.magic())
                .put("crc", batch.checksum())
                .put("codec", batch.compressionType().name)
                .put("timestamp_type", batch.timestampType().name)
                .put("transactional", batch.isTransactional())
                .put("control", batch.isControlBatch())
                .put("max_timestamp", batch.maxTimestamp())
                .put("producer_id", batch.producerId())
                .put("producer_epoch", batch.producerEpoch())
                .put("base_sequence", batch.baseSequence())
                .put("last_sequence", batch.lastSequence())
                .put("count", batch.countOrNull())
                .put("size", batch.sizeInBytes());
        if (batch.deleteHorizonMs().isPresent()) {
            node.put("delete_horizon_ms", batch.deleteHorizonMs().getAsLong());
        } else {
            node.putNull("delete_horizon_ms");
            node.put("base_timestamp", ((DefaultRecordBatch) batch).baseTimestamp());
        }
    }

    private static void record(Record record, ObjectNode node) {
        node.put("offset", record.offset()).put("timestamp", record.timestamp());
        node.put("key", bytes(record.key())).put("value", bytes(record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
    }

    private static byte[] bytes(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    private ByteBuffer build(Random random, long seed) throws ReflectiveOperationException {
        return switch (random.nextInt(12)) {
            case 0 -> control(random, seed);
            case 1 -> empty(random);
            case 2 -> concatenated(data(random), data(random));
            default -> data(random);
        };
    }

    private static ByteBuffer concatenated(ByteBuffer first, ByteBuffer second) {
        return ByteBuffer.allocate(first.remaining() + second.remaining())
                .put(first).put(second).flip();
    }

    /** What compaction leaves of a batch whose producer must be remembered. */
    private static ByteBuffer empty(Random random) {
        long baseOffset = random.nextInt(1000);
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(
                buffer, RecordBatch.CURRENT_MAGIC_VALUE, random.nextLong() >>> 1,
                (short) random.nextInt(Short.MAX_VALUE + 1), random.nextInt(Integer.MAX_VALUE),
                baseOffset, baseOffset + random.nextInt(5), random.nextInt(10),
                timestampType(random), time(random), random.nextBoolean(), false);
        return buffer.flip();
    }

    private static ByteBuffer data(Random random) {
        long baseOffset = random.nextInt(4) == 0 ? random.nextLong() >>> 2 : random.nextInt(1000);
        boolean isTransactional = random.nextInt(4) == 0;
        boolean hasProducer = isTransactional || random.nextBoolean();
        CompressionType codec = CODECS[random.nextInt(CODECS.length)];
        TimestampType timestampType = timestampType(random);
        long deleteHorizonMs = random.nextInt(5) == 0 ? 1_600_000_000_000L : RecordBatch.NO_TIMESTAMP;
        try (MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                new ByteBufferOutputStream(512),
                RecordBatch.CURRENT_MAGIC_VALUE,
                Compression.of(codec).build(),
                timestampType,
                baseOffset,
                timestampType == TimestampType.LOG_APPEND_TIME ? 1_700_000_000_123L : -1,
                hasProducer ? random.nextLong() >>> 1 : RecordBatch.NO_PRODUCER_ID,
                hasProducer ? (short) random.nextInt(32768) : RecordBatch.NO_PRODUCER_EPOCH,
                hasProducer ? sequence(random) : RecordBatch.NO_SEQUENCE,
                isTransactional,
                false,
                random.nextInt(3) - 1,
                Integer.MAX_VALUE,
                deleteHorizonMs)) {
            append(builder, random, baseOffset);
            return builder.build().buffer();
        }
    }

    /** Sequence numbers begin again at 0 behind the highest, also inside a batch. */
    private static int sequence(Random random) {
        return random.nextInt(8) == 0
                ? Integer.MAX_VALUE - random.nextInt(3)
                : random.nextInt(Integer.MAX_VALUE);
    }

    private static void append(MemoryRecordsBuilder builder, Random random, long baseOffset) {
        int count = random.nextInt(50) == 0 ? 300 : 1 + random.nextInt(8);
        boolean hasGaps = random.nextInt(4) == 0;
        boolean isClose = random.nextInt(3) != 0;
        long start = time(random);
        long offset = baseOffset;
        for (int left = count; left > 0; left--) {
            long timestamp = isClose && start < Long.MAX_VALUE
                    ? Math.max(start, 0) + random.nextInt(10_000)
                    : time(random);
            builder.appendWithOffset(
                    offset, timestamp, some(random), some(random), headers(random));
            offset += hasGaps ? 1 + random.nextInt(3) : 1;
        }
        if (hasGaps) {
            builder.overrideLastOffset(offset + random.nextInt(3));
        }
    }

    private static Header[] headers(Random random) {
        Header[] headers = new Header[random.nextInt(3) == 0 ? random.nextInt(4) : 0];
        for (int i = 0; i < headers.length; i++) {
            String key = HEADER_KEYS[random.nextInt(HEADER_KEYS.length)];
            headers[i] = new RecordHeader(key, some(random));
        }
        return headers;
    }

    /** Null, or bytes of which some compress well. */
    private static byte[] some(Random random) {
        int kind = random.nextInt(10);
        if (kind < 2) {
            return null;
        }
        byte[] bytes = new byte[kind == 2 ? 0 : kind == 3 ? 2000 : random.nextInt(100)];
        if (kind > 5) {
            random.nextBytes(bytes);
        }
        return bytes;
    }

    private static TimestampType timestampType(Random random) {
        return random.nextBoolean() ? TimestampType.CREATE_TIME : TimestampType.LOG_APPEND_TIME;
    }

    private static long time(Random random) {
        return TIMES[random.nextInt(TIMES.length)];
    }

    private ByteBuffer control(Random random, long seed) throws ReflectiveOperationException {
        long offset = random.nextInt(1000);
        long now = 1_700_000_000_000L;
        boolean isMarker = random.nextBoolean();
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                new ByteBufferOutputStream(512), RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE,
                TimestampType.CREATE_TIME, offset, -1, isMarker ? 7 : RecordBatch.NO_PRODUCER_ID,
                (short) (isMarker ? random.nextInt(100) : -1), -1, isMarker, true,
                random.nextInt(10), Integer.MAX_VALUE, RecordBatch.NO_TIMESTAMP);
        switch (isMarker ? 0 : 1 + random.nextInt(5)) {
            case 1 -> builder.appendLeaderChangeMessage(
                    now, any(LeaderChangeMessage.class, random, seed));
            case 2 -> builder.appendSnapshotHeaderMessage(
                    now, any(SnapshotHeaderRecord.class, random, seed));
            case 3 -> builder.appendSnapshotFooterMessage(
                    now, any(SnapshotFooterRecord.class, random, seed));
            case 4 -> builder.appendKRaftVersionMessage(
                    now, any(KRaftVersionRecord.class, random, seed));
            case 5 -> builder.appendVotersMessage(now, any(VotersRecord.class, random, seed));
            default -> builder.appendEndTxnMarker(now, marker(random));
        }
        return builder.build().buffer();
    }

    private static EndTransactionMarker marker(Random random) {
        ControlRecordType type =
                random.nextBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        return new EndTransactionMarker(type, random.nextInt());
    }

    /** In the oldest version: the builder decides in which one it writes. */
    private <T> T any(Class<T> type, Random random, long seed) throws ReflectiveOperationException {
        Messages.Kind kind = messages.kind(type.getSimpleName());
        byte[] wire = new RandomWire(seed ^ random.nextLong()).message(kind.schema(kind.lowest));
        return type.cast(kind.read(ByteBuffer.wrap(wire), kind.lowest));
    }
}
