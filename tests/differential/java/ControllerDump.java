package org.apache.kafka.controller;

import java.util.Arrays;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.stream.Collectors;

import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * The whole state of the managers as one line: ELR on (0 or 1), brokers, topics, partitions, separated by '|'; entries
 * by ';', their parts by ' ', lists by ','.
 *
 * A broker is id, epoch, fenced, in controlled shutdown, directories. A topic is its name, its effective min ISR and
 * whether unclean elections are enabled. A partition is topic, number, replicas, adding, removing, ISR, ELR,
 * lastKnownElr, leader, leader epoch, partition epoch, recovery state, directories of the replicas, and the replicas whose
 * directory is offline though their broker is registered.
 */
final class ControllerDump {
    private static final long DIRECTORY = 1000;

    private ControllerDump() {
    }

    static String text(ControllerManagers controller) {
        return String.join("|", controller.elr() ? "1" : "0", brokers(controller), topics(controller),
            partitions(controller));
    }

    static Uuid directory(int broker, int number) {
        return new Uuid(DIRECTORY + broker, DIRECTORY + number);
    }

    private static String brokers(ControllerManagers controller) {
        StringJoiner text = new StringJoiner(";");
        for (BrokerRegistration broker : new TreeMap<>(controller.cluster.brokerRegistrations()).values()) {
            text.add(String.join(" ", Integer.toString(broker.id()), Long.toString(broker.epoch()),
                broker.fenced() ? "1" : "0", broker.inControlledShutdown() ? "1" : "0",
                broker.directories().stream().map(ControllerDump::name).collect(Collectors.joining(","))));
        }
        return text.toString();
    }

    private static String topics(ControllerManagers controller) {
        StringJoiner text = new StringJoiner(";");
        for (String topic : controller.topics.keySet()) {
            int minIsr = controller.replication.getTopicEffectiveMinIsr(topic);
            boolean unclean = Boolean.parseBoolean(controller.configs.getTopicConfig(
                topic, TopicConfig.UNCLEAN_LEADER_ELECTION_ENABLE_CONFIG).value());
            text.add(topic + " " + minIsr + " " + (unclean ? "1" : "0"));
        }
        return text.toString();
    }

    private static String partitions(ControllerManagers controller) {
        StringJoiner text = new StringJoiner(";");
        for (Map.Entry<String, Uuid> topic : controller.topics.entrySet()) {
            int number = 0;
            for (PartitionRegistration partition = controller.replication.getPartition(topic.getValue(), number);
                    partition != null;
                    partition = controller.replication.getPartition(topic.getValue(), ++number)) {
                text.add(topic.getKey() + " " + number + " " + partition(controller, partition));
            }
        }
        return text.toString();
    }

    private static String partition(ControllerManagers controller, PartitionRegistration p) {
        int[] offline = Arrays.stream(p.replicas).filter(id -> controller.cluster.registration(id) != null
            && !controller.cluster.hasOnlineDir(id, p.directory(id))).toArray();
        return String.join(" ",
            join(p.replicas), join(p.addingReplicas), join(p.removingReplicas), join(p.isr), join(p.elr),
            join(p.lastKnownElr), Integer.toString(p.leader), Integer.toString(p.leaderEpoch),
            Integer.toString(p.partitionEpoch), Integer.toString(p.leaderRecoveryState.value()),
            Arrays.stream(p.directories).map(ControllerDump::name).collect(Collectors.joining(",")), join(offline));
    }

    private static String name(Uuid directory) {
        if (directory.equals(DirectoryId.UNASSIGNED)) return "unassigned";
        if (directory.equals(DirectoryId.MIGRATING)) return "migrating";
        if (directory.equals(DirectoryId.LOST)) return "lost";
        return Long.toString(directory.getLeastSignificantBits() - DIRECTORY);
    }

    private static String join(int[] ids) {
        return Arrays.stream(ids).mapToObj(Integer::toString).collect(Collectors.joining(","));
    }
}
