package org.apache.kafka.controller;

import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeSet;

import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.StaleBrokerEpochException;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsResponseData;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.AssignReplicasToDirsRequestData;
import org.apache.kafka.common.message.AssignReplicasToDirsResponseData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.ElectLeadersResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;

/**
 * Each event as the request or the task of Kafka's controller that it is. Lists are separated by ',', partitions are
 * written topic:number, a broker's directories are numbered from 0.
 */
final class ControllerEvents {
    static final List<String> TASKS = List.of("expire", "electunclean", "electpreferred");
    private static final short ALTER_PARTITION_VERSION = 3;
    private static final ControllerRequestContext CONTEXT = new ControllerRequestContext(
        new RequestHeaderData().setRequestApiVersion(ALTER_PARTITION_VERSION), KafkaPrincipal.ANONYMOUS,
        OptionalLong.empty());

    private final ControllerManagers controller;

    ControllerEvents(boolean elr, int staticMinIsr) {
        controller = new ControllerManagers(elr, staticMinIsr);
    }

    ControllerManagers controller() {
        return controller;
    }

    String handle(String[] event) throws ReflectiveOperationException {
        switch (event[0]) {
            case "register": return register(event);
            case "expire": return expire(Integer.parseInt(event[1]));
            case "heartbeat": return heartbeat(event);
            case "unregister": return none(controller.apply(
                controller.replication.unregisterBroker(Integer.parseInt(event[1]))));
            case "create": return create(event);
            case "delete": return delete(event[1]);
            case "alter": return alter(event);
            case "elect": return elect(event);
            case "electunclean": return none(controller.apply(controller.replication.maybeElectUncleanLeaders()));
            case "electpreferred": return none(controller.apply(controller.replication.maybeBalancePartitionLeaders()));
            case "reassign": return reassign(event);
            case "config": return config(event);
            case "feature": return feature(Short.parseShort(event[1]));
            case "assign": return assign(event);
            case "failover": controller.failOver(); return "";
            default: throw new IllegalArgumentException("no event " + event[0]);
        }
    }

    private static String none(Object ignored) {
        return "";
    }

    /** register|broker|new epoch|previous epoch|incarnation|directories|rack; its last session is over. */
    private String register(String[] event) {
        int broker = Integer.parseInt(event[1]);
        endSession(broker);
        BrokerRegistrationRequestData request = new BrokerRegistrationRequestData().setBrokerId(broker)
            .setClusterId(ControllerManagers.CLUSTER_ID).setPreviousBrokerEpoch(Long.parseLong(event[3]))
            .setIncarnationId(new Uuid(7, Long.parseLong(event[4]))).setLogDirs(directories(broker, event[5]))
            .setRack(event[6].isEmpty() ? null : event[6]);
        ControllerManagers.supported().forEach((name, range) -> add(request.features(),
            new BrokerRegistrationRequestData.Feature().setName(name).setMinSupportedVersion(range.min())
                .setMaxSupportedVersion(range.max())));
        controller.apply(controller.cluster.registerBroker(
            request, Long.parseLong(event[2]), controller.features.finalizedFeatures(Long.MAX_VALUE), true));
        return "";
    }

    private void endSession(int broker) {
        BrokerRegistration registration = controller.cluster.registration(broker);
        if (registration != null) {
            BrokerHeartbeatTracker tracker = controller.cluster.heartbeatManager().tracker();
            tracker.updateContactTime(new BrokerIdAndEpoch(broker, registration.epoch()),
                tracker.time().nanoseconds() - 2 * ControllerManagers.SESSION_TIMEOUT_NS);
        }
    }

    /** expire|broker: no heartbeat came in time. */
    private String expire(int broker) {
        endSession(broker);
        while (controller.apply(controller.replication.maybeFenceOneStaleBroker())) {
            // One broker at a time, as the periodic task does it.
        }
        return "";
    }

    /** heartbeat|broker|epoch|want fence|want shut down|offline directories|caught up|others caught up. */
    private String heartbeat(String[] event) {
        int broker = Integer.parseInt(event[1]);
        long epoch = Long.parseLong(event[2]);
        BrokerHeartbeatManager heartbeats = controller.cluster.heartbeatManager();
        for (BrokerHeartbeatManager.BrokerHeartbeatState other : heartbeats.brokers()) {
            if (!other.fenced() && other.id() != broker) {
                heartbeats.touch(other.id(), false, event[7].equals("1") ? controller.endOffset() : -1);
            }
        }
        controller.cluster.trackBrokerHeartbeat(broker, epoch);
        OptionalLong registered = controller.cluster.registerBrokerRecordOffset(broker);
        if (registered.isEmpty()) {
            throw new StaleBrokerEpochException("not registered");
        }
        BrokerHeartbeatRequestData request = new BrokerHeartbeatRequestData().setBrokerId(broker)
            .setBrokerEpoch(epoch).setWantFence(event[3].equals("1")).setWantShutDown(event[4].equals("1"))
            .setOfflineLogDirs(directories(broker, event[5]))
            .setCurrentMetadataOffset(event[6].equals("1") ? controller.endOffset() : -1);
        BrokerHeartbeatReply reply = controller.apply(
            controller.replication.processBrokerHeartbeat(request, registered.getAsLong()));
        if (reply.inControlledShutdown()) {
            heartbeats.maybeUpdateControlledShutdownOffset(broker, controller.endOffset());
        }
        return "";
    }

    /** create|topic|replicas;replicas|config=value,config=value. */
    private String create(String[] event) throws ReflectiveOperationException {
        CreateTopicsRequestData.CreatableTopic topic = new CreateTopicsRequestData.CreatableTopic()
            .setName(event[1]).setNumPartitions(-1).setReplicationFactor((short) -1);
        int partition = 0;
        for (String replicas : event[2].split(";")) {
            add(topic.assignments(), new CreateTopicsRequestData.CreatableReplicaAssignment()
                .setPartitionIndex(partition++).setBrokerIds(ids(replicas)));
        }
        for (String config : list(event[3])) {
            add(topic.configs(), new CreateTopicsRequestData.CreatableTopicConfig()
                .setName(config.split("=")[0]).setValue(config.split("=")[1]));
        }
        CreateTopicsRequestData request = new CreateTopicsRequestData();
        add(request.topics(), topic);
        @SuppressWarnings("unchecked")
        ControllerResult<CreateTopicsResponseData> result = (ControllerResult<CreateTopicsResponseData>)
            ControllerManagers.call(controller.replication, "createTopics", CONTEXT, request, java.util.Set.of(), true);
        return check(controller.apply(result).topics().find(event[1]).errorCode());
    }

    /** delete|topic. */
    private String delete(String topic) {
        ResultOrError<Uuid> found = controller.replication.findTopicIds(Long.MAX_VALUE, List.of(topic)).get(topic);
        if (found.isError()) return check(found.error());
        return check(controller.apply(
            controller.replication.deleteTopics(CONTEXT, List.of(found.result()))).get(found.result()));
    }

    /** alter|leader|its epoch|topic|partition|leader epoch|partition epoch|recovering|id:epoch,id:epoch. */
    private String alter(String[] event) {
        List<AlterPartitionRequestData.BrokerState> isr = new ArrayList<>();
        for (String member : list(event[8])) {
            isr.add(new AlterPartitionRequestData.BrokerState().setBrokerId(Integer.parseInt(member.split(":")[0]))
                .setBrokerEpoch(Long.parseLong(member.split(":")[1])));
        }
        AlterPartitionRequestData.TopicData topic = new AlterPartitionRequestData.TopicData()
            .setTopicId(controller.topics.getOrDefault(event[3], Uuid.ONE_UUID));
        topic.partitions().add(new AlterPartitionRequestData.PartitionData()
            .setPartitionIndex(Integer.parseInt(event[4])).setLeaderEpoch(Integer.parseInt(event[5]))
            .setPartitionEpoch(Integer.parseInt(event[6])).setLeaderRecoveryState(Byte.parseByte(event[7]))
            .setNewIsrWithEpochs(isr));
        AlterPartitionRequestData request = new AlterPartitionRequestData()
            .setBrokerId(Integer.parseInt(event[1])).setBrokerEpoch(Long.parseLong(event[2]));
        request.topics().add(topic);
        AlterPartitionResponseData response = controller.apply(controller.replication.alterPartition(CONTEXT, request));
        return event[3] + ":" + event[4] + "=" + error(response.topics().get(0).partitions().get(0).errorCode());
    }

    /** elect|PREFERRED or UNCLEAN|partitions, or * for all. */
    private String elect(String[] event) {
        ElectLeadersRequestData request = new ElectLeadersRequestData()
            .setElectionType((byte) (event[1].equals("UNCLEAN") ? 1 : 0));
        if (event[2].equals("*")) {
            request.setTopicPartitions(null);
        } else {
            for (String partition : list(event[2])) {
                String name = partition.split(":")[0];
                ElectLeadersRequestData.TopicPartitions topic = request.topicPartitions().find(name);
                if (topic == null) {
                    topic = new ElectLeadersRequestData.TopicPartitions().setTopic(name);
                    add(request.topicPartitions(), topic);
                }
                topic.partitions().add(Integer.parseInt(partition.split(":")[1]));
            }
        }
        ElectLeadersResponseData response = controller.apply(controller.replication.electLeaders(request));
        TreeSet<String> answers = new TreeSet<>();
        response.replicaElectionResults().forEach(topic -> topic.partitionResult().forEach(partition ->
            answers.add(topic.topic() + ":" + partition.partitionId() + "=" + error(partition.errorCode()))));
        return String.join(",", answers);
    }

    /** reassign|topic|partition|replicas, or - to cancel|replication factor may change. */
    private String reassign(String[] event) throws ReflectiveOperationException {
        AlterPartitionReassignmentsRequestData.ReassignableTopic topic =
            new AlterPartitionReassignmentsRequestData.ReassignableTopic().setName(event[1]);
        topic.partitions().add(new AlterPartitionReassignmentsRequestData.ReassignablePartition()
            .setPartitionIndex(Integer.parseInt(event[2])).setReplicas(event[3].equals("-") ? null : ids(event[3])));
        AlterPartitionReassignmentsRequestData request = new AlterPartitionReassignmentsRequestData();
        request.topics().add(topic);
        if (event[4].equals("0")) {
            // Kafka 4.0 does not have it: there the factor may always change.
            ControllerManagers.call(request, "setAllowReplicationFactorChange", false);
        }
        AlterPartitionReassignmentsResponseData response =
            controller.apply(controller.replication.alterPartitionReassignments(request));
        return event[1] + ":" + event[2] + "=" + error(response.responses().get(0).partitions().get(0).errorCode());
    }

    /** config|topic, or nothing for the cluster's default|name=value,name=- with - to delete. */
    private String config(String[] event) throws ReflectiveOperationException {
        ConfigResource resource = new ConfigResource(
            event[1].isEmpty() ? ConfigResource.Type.BROKER : ConfigResource.Type.TOPIC, event[1]);
        Map<String, Map.Entry<OpType, String>> operations = new LinkedHashMap<>();
        for (String written : list(event[2])) {
            String[] config = written.split("=");
            operations.put(config[0], config[1].equals("-")
                ? new SimpleImmutableEntry<>(OpType.DELETE, null) : new SimpleImmutableEntry<>(OpType.SET, config[1]));
        }
        @SuppressWarnings("unchecked")
        ControllerResult<Map<ConfigResource, ApiError>> result = (ControllerResult<Map<ConfigResource, ApiError>>)
            ControllerManagers.call(controller.configs, "incrementalAlterConfigs", Map.of(resource, operations), false, true);
        return check(controller.apply(result).get(resource));
    }

    /** feature|level of eligible.leader.replicas.version. */
    private String feature(short level) throws ReflectiveOperationException {
        String name = EligibleLeaderReplicasVersion.FEATURE_NAME;
        UpgradeType type = level < (controller.elr() ? 1 : 0) ? UpgradeType.SAFE_DOWNGRADE : UpgradeType.UPGRADE;
        @SuppressWarnings("unchecked")
        ControllerResult<ApiError> result = (ControllerResult<ApiError>)
            ControllerManagers.call(controller.configs, "updateFeatures", Map.of(name, level), Map.of(name, type), false, 0);
        return check(controller.apply(result));
    }

    /** assign|broker|epoch|directory|partitions. */
    private String assign(String[] event) {
        int broker = Integer.parseInt(event[1]);
        AssignReplicasToDirsRequestData.DirectoryData directory = new AssignReplicasToDirsRequestData.DirectoryData()
            .setId(directories(broker, event[3]).get(0));
        for (String partition : list(event[4])) {
            AssignReplicasToDirsRequestData.TopicData topic = new AssignReplicasToDirsRequestData.TopicData()
                .setTopicId(controller.topics.getOrDefault(partition.split(":")[0], Uuid.ONE_UUID));
            topic.partitions().add(new AssignReplicasToDirsRequestData.PartitionData()
                .setPartitionIndex(Integer.parseInt(partition.split(":")[1])));
            directory.topics().add(topic);
        }
        AssignReplicasToDirsRequestData request = new AssignReplicasToDirsRequestData()
            .setBrokerId(broker).setBrokerEpoch(Long.parseLong(event[2]));
        request.directories().add(directory);
        AssignReplicasToDirsResponseData response =
            controller.apply(controller.replication.handleAssignReplicasToDirs(request));
        List<String> asked = list(event[4]);
        Map<String, String> answers = new LinkedHashMap<>();
        for (int i = 0; i < asked.size(); i++) {
            answers.put(asked.get(i), error(response.directories().get(0).topics().get(i).partitions().get(0).errorCode()));
        }
        TreeSet<String> sorted = new TreeSet<>();
        answers.forEach((partition, error) -> sorted.add(partition + "=" + error));
        return String.join(",", sorted);
    }

    private static List<Uuid> directories(int broker, String numbers) {
        List<Uuid> directories = new ArrayList<>();
        for (int number : ids(numbers)) directories.add(ControllerDump.directory(broker, number));
        return directories;
    }

    private static String error(short code) {
        return Errors.forCode(code).name();
    }

    /** Throws the error of an answer that is one for the whole event. */
    private static String check(short code) {
        if (code != Errors.NONE.code()) throw Errors.forCode(code).exception();
        return "";
    }

    private static String check(ApiError error) {
        return check(error.error().code());
    }

    /** Through the interface: the collections' own method names a class that is in another package from 4.4 on. */
    private static <T> void add(Collection<T> collection, T element) {
        collection.add(element);
    }

    private static List<Integer> ids(String field) {
        List<Integer> ids = new ArrayList<>();
        for (String id : list(field)) ids.add(Integer.parseInt(id));
        return ids;
    }

    private static List<String> list(String field) {
        return field.isEmpty() ? List.of() : List.of(field.split(","));
    }
}
