import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What an application in Java does: every codec, every acks, every way to begin, administration. */
public final class JavaClient {
    private static final long TIME_MS = 1_700_000_000_000L;
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final String bootstrap;
    private final String topic;
    private final TopicPartition partition;

    private JavaClient(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.partition = new TopicPartition(topic, 0);
    }

    public static void main(String[] arguments) throws Exception {
        new JavaClient(arguments[0], arguments[1]).tell();
    }

    private void tell() throws Exception {
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
            NewTopic asked = new NewTopic(topic, 2, (short) 1);
            admin.createTopics(Set.of(asked.configs(Map.of("retention.ms", "-1")))).all().get();
            for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
                produce("compression.type", codec, 20, 50);
            }
            for (String acks : List.of("0", "1", "all")) {
                produce("acks", acks, 20, 50);
            }
            produce("max.request.size", "2000000", 2, 900_000);
            readAll();
            readByTime();
            readFromResets();
            administer(admin);
        }
    }

    private void produce(String name, String value, int count, int size) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("linger.ms", "5");
        properties.put("enable.idempotence", String.valueOf(!name.equals("acks")));
        properties.put(name, value);
        List<Future<RecordMetadata>> waiting = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(
                        properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int at = 0; at < count; at++) {
                byte[] key = at % 2 == 0 ? null : ("key-" + at).getBytes(StandardCharsets.UTF_8);
                byte[] bytes = at % 7 == 6 ? null : filled(size, at);
                ProducerRecord<byte[], byte[]> record =
                        new ProducerRecord<>(topic, 0, TIME_MS + 1000L * at, key, bytes);
                if (at % 3 == 0) {
                    record.headers().add(new RecordHeader("h", new byte[] {(byte) at}));
                    record.headers().add(new RecordHeader("h", null));
                }
                waiting.add(producer.send(record));
            }
        }
        List<String> offsets = new ArrayList<>();
        for (Future<RecordMetadata> each : waiting) {
            RecordMetadata metadata = each.get();
            offsets.add(metadata.hasOffset() ? String.valueOf(metadata.offset()) : "-");
        }
        System.out.println("produced with " + name + "=" + value + ": " + offsets);
    }

    private static byte[] filled(int size, int at) {
        byte[] bytes = new byte[size];
        Arrays.fill(bytes, (byte) at);
        return bytes;
    }

    private KafkaConsumer<byte[], byte[]> consumer(String reset) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("auto.offset.reset", reset);
        properties.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(
                properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private void readAll() {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("earliest")) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(PATIENCE)) {
                    System.out.printf(
                            "%d %d key=%s value=%s headers=%s epoch=%s%n",
                            record.offset(),
                            record.timestamp() - TIME_MS,
                            Arrays.toString(record.key()),
                            Arrays.hashCode(record.value()),
                            record.headers(),
                            record.leaderEpoch());
                }
            }
        }
    }

    private void readByTime() {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("earliest")) {
            consumer.assign(List.of(partition));
            OffsetAndTimestamp found =
                    consumer.offsetsForTimes(Map.of(partition, TIME_MS + 4500)).get(partition);
            System.out.println("at a time: " + found);
            Object none = consumer.offsetsForTimes(Map.of(partition, TIME_MS * 2)).get(partition);
            System.out.println("at a time to come: " + none);
            consumer.seek(partition, found.offset());
            System.out.println("begins at " + first(consumer));
        }
    }

    private static long first(KafkaConsumer<byte[], byte[]> consumer) {
        return consumer.poll(PATIENCE).iterator().next().offset();
    }

    private void readFromResets() throws Exception {
        for (String reset : List.of("earliest", "by_duration:P3650D", "latest", "none")) {
            try (KafkaConsumer<byte[], byte[]> consumer = consumer(reset)) {
                consumer.assign(List.of(partition));
                consumer.seek(partition, 100_000);
                if (reset.equals("latest")) {
                    consumer.poll(Duration.ZERO);
                    System.out.println("latest: " + consumer.endOffsets(List.of(partition)));
                } else if (reset.equals("none")) {
                    try {
                        consumer.poll(PATIENCE);
                    } catch (RuntimeException refused) {
                        System.out.println("none: " + refused.getClass().getSimpleName());
                    }
                } else {
                    System.out.println(reset + ": " + first(consumer));
                }
            }
        }
    }

    private void administer(Admin admin) throws Exception {
        System.out.println("topics: " + admin.listTopics().names().get().contains(topic));
        System.out.println(
                "partitions: "
                        + admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic)
                                .partitions().size());
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ConfigEntry entry = new ConfigEntry("max.message.bytes", "123456");
        AlterConfigOp set = new AlterConfigOp(entry, AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(set))).all().get();
        ConfigEntry shown = null;
        // A change takes a moment to be seen.
        for (int tries = 200; tries > 0 && (shown == null || shown.isDefault()); tries--) {
            Thread.sleep(tries == 200 ? 0 : 50);
            shown = admin.describeConfigs(List.of(resource)).all().get().get(resource)
                    .get("max.message.bytes");
        }
        System.out.println(shown);
        System.out.println(
                "low watermark: "
                        + admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(7)))
                                .lowWatermarks().get(partition).get().lowWatermark());
        for (OffsetSpec spec :
                List.of(OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.maxTimestamp())) {
            System.out.println(
                    spec.getClass().getSimpleName()
                            + admin.listOffsets(Map.of(partition, spec)).all().get());
        }
        System.out.println("nodes: " + admin.describeCluster().nodes().get().size());
        System.out.println(
                "producers: "
                        + admin.describeProducers(List.of(partition)).all().get().get(partition)
                                .activeProducers().size());
        System.out.println("voters: "
                + admin.describeMetadataQuorum().quorumInfo().get().voters().size());
        refused("a topic that exists",
                () -> admin.createTopics(Set.of(new NewTopic(topic, 1, (short) 1))).all().get());
        refused("fewer partitions",
                () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all().get());
        admin.deleteTopics(List.of(topic)).all().get();
        System.out.println("deleted");
    }

    private interface Asking {
        void ask() throws Exception;
    }

    private static void refused(String what, Asking asking) throws Exception {
        try {
            asking.ask();
            System.out.println(what + ": not refused");
        } catch (ExecutionException error) {
            System.out.println(what + ": " + error.getCause());
        }
    }
}
