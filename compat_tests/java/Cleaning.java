import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** A partition's folder, cleaned by Kafka round by round, at times that the question sets. */
final class Cleaning {
    private static final int MAP_ENTRY_BYTES = 24;
    private static final int IO_BUFFER_BYTES = 1 << 16;
    private static final int DAY_MS = 24 * 60 * 60 * 1000;

    private Cleaning() {}

    /** What each round has done, and the files that it has left. */
    static JsonNode clean(JsonNode question) throws IOException, GeneralSecurityException {
        SetTime time = new SetTime(question.get("wall_ms").asLong());
        File folder = new File(question.get("folder").asText());
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        UnifiedLog log = open(folder, question, time, failures);
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>();
        logs.put(log.topicPartition(), log);
        LogCleanerManager manager =
                new LogCleanerManager(List.of(folder.getParentFile()), logs, failures);
        Cleaner cleaner = cleaner(question.get("map_slots").asInt(), time);
        ArrayNode rounds = Oracle.JSON.arrayNode();
        for (JsonNode round : question.get("rounds")) {
            time.wallMs = round.get("wall_ms").asLong();
            log.updateHighWatermark(round.get("high_watermark").asLong());
            ObjectNode told = rounds.addObject();
            Optional<LogToClean> filthiest =
                    manager.grabFilthiestCompactedLog(time, new PreCleanStats());
            if (filthiest.isPresent()) {
                LogToClean log1 = filthiest.get();
                long end = cleaner.doClean(log1, time.wallMs).getKey();
                manager.doneCleaning(log.topicPartition(), folder.getParentFile(), end);
                told.put("first_dirty", log1.firstDirtyOffset())
                        .put("first_uncleanable", log1.firstUncleanableOffset())
                        .put("ratio", log1.cleanableRatio())
                        .put("end", end);
            }
            log.deleteOldSegments();
            told.put("log_start", log.logStartOffset());
            addFiles(folder, told.putObject("files"));
        }
        log.close();
        manager.removeMetrics();
        return Oracle.JSON.objectNode().set("rounds", rounds);
    }

    private static UnifiedLog open(
            File folder, JsonNode question, Time time, LogDirFailureChannel failures)
            throws IOException {
        Map<String, String> config = new HashMap<>();
        for (Map.Entry<String, JsonNode> field : question.get("config").properties()) {
            config.put(field.getKey(), field.getValue().asText());
        }
        // A scheduler that was not started takes no work: nothing is removed behind our back.
        return UnifiedLog.create(
                folder,
                new LogConfig(config),
                question.get("log_start").asLong(),
                question.get("log_end").asLong(),
                new KafkaScheduler(1),
                new BrokerTopicStats(),
                time,
                DAY_MS,
                new ProducerStateManagerConfig(DAY_MS, false),
                DAY_MS,
                failures,
                true,
                Optional.empty());
    }

    private static Cleaner cleaner(int mapSlots, Time time) throws GeneralSecurityException {
        return new Cleaner(
                0,
                new SkimpyOffsetMap(mapSlots * MAP_ENTRY_BYTES),
                IO_BUFFER_BYTES,
                IO_BUFFER_BYTES,
                1.0,
                new Throttler(Double.MAX_VALUE, Long.MAX_VALUE / 2_000_000, "cleaner-io", "bytes", time),
                time,
                partition -> {});
    }

    private static void addFiles(File folder, ObjectNode to) throws IOException {
        File[] files = folder.listFiles(File::isFile);
        Arrays.sort(files);
        for (File file : files) {
            to.put(file.getName(), Oracle.HEX.formatHex(Files.readAllBytes(file.toPath())));
        }
    }

    /** A clock that stands still until somebody sets it. */
    private static final class SetTime implements Time {
        private long wallMs;

        SetTime(long wallMs) {
            this.wallMs = wallMs;
        }

        @Override
        public long milliseconds() {
            return wallMs;
        }

        @Override
        public long nanoseconds() {
            return wallMs * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
