import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.DynamicConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/** What each configuration of Kafka is, and what Kafka says to the values given as arguments. */
public final class Configs {
    private Configs() {}

    public static void main(String[] texts) throws ReflectiveOperationException {
        Map<String, ConfigDef> kinds = new LinkedHashMap<>();
        kinds.put("broker", AbstractKafkaConfig.CONFIG_DEF);
        kinds.put("topic", LogConfig.configDefCopy());
        kinds.put("group", GroupConfig.CONFIG_DEF);
        kinds.put("client metrics", ClientMetricsConfigs.configDef());
        for (Map.Entry<String, ConfigDef> kind : kinds.entrySet()) {
            for (ConfigDef.ConfigKey key :
                    new TreeMap<>(kind.getValue().configKeys()).values()) {
                print(facts(kind.getKey(), key), key, texts);
            }
        }
        for (String name : DynamicConfig.Broker.names()) {
            if (!AbstractKafkaConfig.CONFIG_DEF.names().contains(name)) {
                ConfigDef.ConfigKey key = DynamicConfig.Broker.configKeys().get(name);
                print(facts("only dynamic", key), key, texts);
            }
        }
    }

    private static ObjectNode facts(String kind, ConfigDef.ConfigKey key)
            throws ReflectiveOperationException {
        ObjectNode facts = Oracle.JSON.objectNode().put("kind", kind).put("name", key.name);
        facts.put("type", key.type.name()).put("importance", key.importance.name());
        facts.put("required", !key.hasDefault());
        if (key.hasDefault()) {
            facts.put("default", ConfigDef.convertToString(key.defaultValue, key.type));
        }
        facts.put("valid", key.validator == null ? "" : key.validator.toString());
        facts.put("internal", key.internalConfig);
        if (kind.equals("topic")) {
            facts.put("synonym", ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS.get(key.name));
        } else if (kind.equals("group")) {
            Field synonyms = GroupConfig.class.getField("ALL_GROUP_CONFIG_SYNONYMS");
            Object named = ((Map<?, ?>) synonyms.get(null)).get(key.name);
            facts.put("synonym", named == null ? null : named.toString());
        } else if (kind.equals("broker")) {
            facts.put("update", DynamicBrokerConfig.dynamicConfigUpdateModes().get(key.name));
        }
        return facts;
    }

    private static void print(ObjectNode facts, ConfigDef.ConfigKey key, String[] texts) {
        ObjectNode said = facts.putObject("said");
        for (String text : texts) {
            said.set(text, said(key, text));
        }
        System.out.println(facts);
    }

    private static ObjectNode said(ConfigDef.ConfigKey key, String text) {
        ObjectNode said = Oracle.JSON.objectNode();
        try {
            ConfigDef alone = new ConfigDef().define(key);
            Object value = alone.parse(Map.of(key.name, text)).get(key.name);
            return said.put("value", ConfigDef.convertToString(value, key.type));
        } catch (RuntimeException error) {
            return said.put("error", error.getMessage());
        }
    }
}
