package org.apache.kafka.controller;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metadata.UnregisterBrokerRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.timeline.SnapshotRegistry;

/** Kafka's managers, wired together as its QuorumController does, with records replayed as soon as they are made. */
final class ControllerManagers {
    static final String CLUSTER_ID = "kelr";
    static final long SESSION_TIMEOUT_NS = 9_000_000_000L;
    private static final int NODE_ID = 3000;

    final ClusterControlManager cluster;
    final ConfigurationControlManager configs;
    final FeatureControlManager features;
    final ReplicationControlManager replication;
    /** The topics that there are, by name. */
    final Map<String, Uuid> topics = new TreeMap<>();
    /** The offset of the last record. */
    private long offset = 0;

    /** Made without naming LogContext, which is in another package from 4.4 on; the managers make their own. */
    private static SnapshotRegistry registry() {
        try {
            for (Constructor<?> one : SnapshotRegistry.class.getConstructors()) {
                if (one.getParameterCount() == 1) {
                    Object log = one.getParameterTypes()[0].getConstructor().newInstance();
                    return (SnapshotRegistry) one.newInstance(log);
                }
            }
            throw new NoSuchMethodException("SnapshotRegistry(LogContext)");
        } catch (ReflectiveOperationException error) {
            throw new LinkageError("this Kafka's SnapshotRegistry is made otherwise", error);
        }
    }

    ControllerManagers(boolean elr, int staticMinIsr) {
        SnapshotRegistry registry = registry();
        features = new FeatureControlManager.Builder().setSnapshotRegistry(registry)
            .setQuorumFeatures(new QuorumFeatures(NODE_ID, supported(), List.of(NODE_ID))).build();
        replayFeature(MetadataVersion.FEATURE_NAME, MetadataVersion.latestProduction().featureLevel());
        configs = new ConfigurationControlManager.Builder().setSnapshotRegistry(registry)
            .setKafkaConfigSchema(schema()).setFeatureControl(features).setNodeId(NODE_ID)
            .setStaticConfig(Map.of(TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG, Integer.toString(staticMinIsr)))
            .setExistenceChecker(this::checkExistence).build();
        cluster = new ClusterControlManager.Builder().setSnapshotRegistry(registry)
            .setClusterId(CLUSTER_ID).setTime(new StillTime()).setSessionTimeoutNs(SESSION_TIMEOUT_NS)
            .setFeatureControlManager(features).setBrokerShutdownHandler(this::addRecordsForShutdown).build();
        replication = new ReplicationControlManager.Builder().setSnapshotRegistry(registry)
            .setConfigurationControl(configs).setClusterControl(cluster).setFeatureControl(features).build();
        cluster.activate();
        if (elr) {
            // What a cluster that is formatted with ELR on starts from.
            List<ApiMessageAndVersion> records = new ArrayList<>();
            configs.maybeGenerateElrSafetyRecords(records);
            replay(records);
            replayFeature(EligibleLeaderReplicasVersion.FEATURE_NAME, (short) 1);
        }
    }

    static Map<String, VersionRange> supported() {
        Map<String, VersionRange> supported = new HashMap<>();
        supported.put(MetadataVersion.FEATURE_NAME, VersionRange.of(
            MetadataVersion.MINIMUM_VERSION.featureLevel(), MetadataVersion.latestProduction().featureLevel()));
        supported.put(EligibleLeaderReplicasVersion.FEATURE_NAME, VersionRange.of((short) 0, (short) 1));
        return supported;
    }

    /** The two configs that elections depend on, with Kafka's own defaults and synonyms. */
    private static KafkaConfigSchema schema() {
        String minIsr = TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG;
        String unclean = TopicConfig.UNCLEAN_LEADER_ELECTION_ENABLE_CONFIG;
        ConfigDef definition = new ConfigDef()
            .define(minIsr, ConfigDef.Type.INT, 1, ConfigDef.Importance.MEDIUM, "")
            .define(unclean, ConfigDef.Type.BOOLEAN, false, ConfigDef.Importance.MEDIUM, "");
        return new KafkaConfigSchema(
            Map.of(ConfigResource.Type.BROKER, definition, ConfigResource.Type.TOPIC, definition),
            Map.of(minIsr, List.of(new ConfigSynonym(minIsr)), unclean, List.of(new ConfigSynonym(unclean))));
    }

    private void checkExistence(ConfigResource resource) {
        if (resource.type() == ConfigResource.Type.TOPIC && replication.getTopicId(resource.name()) == null) {
            throw new UnknownTopicOrPartitionException(resource.name());
        }
    }

    private void addRecordsForShutdown(int broker, boolean clean, List<ApiMessageAndVersion> records) {
        replication.handleBrokerShutdown(broker, clean, records);
    }

    boolean elr() {
        return features.isElrFeatureEnabled();
    }

    /** The offset that an up-to-date broker reports. */
    long endOffset() {
        return offset;
    }

    /** Another controller takes over: it has the same records, and knows nothing of heartbeats yet. */
    void failOver() {
        cluster.deactivate();
        cluster.activate();
    }

    <T> T apply(ControllerResult<T> result) {
        replay(result.records());
        return result.response();
    }

    private void replayFeature(String name, short level) {
        offset++;
        features.replay(new FeatureLevelRecord().setName(name).setFeatureLevel(level));
    }

    private void replay(List<ApiMessageAndVersion> records) {
        for (ApiMessageAndVersion record : records) {
            offset++;
            replay(record.message());
        }
    }

    private void replay(ApiMessage message) {
        if (message instanceof PartitionChangeRecord) {
            replication.replay((PartitionChangeRecord) message);
        } else if (message instanceof BrokerRegistrationChangeRecord) {
            cluster.replay((BrokerRegistrationChangeRecord) message);
        } else if (message instanceof RegisterBrokerRecord) {
            cluster.replay((RegisterBrokerRecord) message, offset);
        } else if (message instanceof UnregisterBrokerRecord) {
            cluster.replay((UnregisterBrokerRecord) message);
        } else if (message instanceof TopicRecord) {
            TopicRecord topic = (TopicRecord) message;
            replication.replay(topic);
            topics.put(topic.name(), topic.topicId());
        } else if (message instanceof PartitionRecord) {
            replication.replay((PartitionRecord) message);
        } else if (message instanceof RemoveTopicRecord) {
            RemoveTopicRecord topic = (RemoveTopicRecord) message;
            replication.replay(topic);
            topics.values().remove(topic.topicId());
        } else if (message instanceof ConfigRecord) {
            configs.replay((ConfigRecord) message);
        } else if (message instanceof FeatureLevelRecord) {
            features.replay((FeatureLevelRecord) message);
        } else if (message instanceof ClearElrRecord) {
            replication.replay((ClearElrRecord) message);
        } else {
            throw new IllegalStateException("unexpected record " + message);
        }
    }

    /** Calls a method whose last arguments are not there in every version: those that it does not take are dropped. */
    static Object call(Object target, String name, Object... arguments) throws ReflectiveOperationException {
        for (Method method : target.getClass().getDeclaredMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() <= arguments.length) {
                try {
                    return method.invoke(target, Arrays.copyOf(arguments, method.getParameterCount()));
                } catch (InvocationTargetException e) {
                    if (e.getCause() instanceof RuntimeException) {
                        throw (RuntimeException) e.getCause();
                    }
                    throw e;
                }
            }
        }
        throw new NoSuchMethodException(target.getClass() + "." + name);
    }

    /** A clock that stands still, so that sessions end only where an event ends them. */
    private static final class StillTime implements Time {
        @Override
        public long milliseconds() {
            return 1_000_000_000L;
        }

        @Override
        public long nanoseconds() {
            return 1_000_000_000_000_000L;
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
