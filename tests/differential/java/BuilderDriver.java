import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Runs Apache Kafka's own PartitionChangeBuilder on cases that arrive as lines, and answers each with the registration
 * that its record leaves behind. One class file serves Kafka 4.0 to 4.3: what differs between them is reached by
 * reflection.
 *
 * A case has 21 fields separated by '|': replicas, ISR, ELR, lastKnownElr, adding, removing, leader, leader epoch,
 * recovering (0 or 1), partition epoch; then electable brokers, min ISR, ELR on (0 or 1), election, target ISR, target
 * replicas, unclean shutdown replicas, target adding, target removing, target recovering; then whether lastKnownElr is the
 * last known leader (1) or KIP-966's set (0). Lists are separated by commas; '*' means that the event does not set it.
 * An answer has the first ten fields, and whether a record was written; or "error " and the exception.
 */
public final class BuilderDriver {
    private static final Uuid TOPIC = new Uuid(966, 966);

    private final Constructor<?> constructor;
    private final boolean elrInConstructor;

    private BuilderDriver() {
        constructor = PartitionChangeBuilder.class.getConstructors()[0];
        elrInConstructor = constructor.getParameterCount() == 7;
    }

    public static void main(String[] args) throws IOException {
        BuilderDriver driver = new BuilderDriver();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                out.flush();
            } else {
                out.print(driver.answer(line));
                out.print('\n');
            }
        }
        out.flush();
    }

    private String answer(String line) {
        try {
            return run(line.split("\\|", -1));
        } catch (Exception e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            return "error " + cause.getClass().getSimpleName() + ": " + cause.getMessage();
        }
    }

    private String run(String[] fields) throws ReflectiveOperationException {
        PartitionRegistration before = registration(fields);
        PartitionChangeBuilder builder = builder(before, fields);
        builder.setElection(PartitionChangeBuilder.Election.valueOf(fields[13]));
        builder.setDefaultDirProvider(BuilderDriver::directory);
        builder.setUseLastKnownLeaderInBalancedRecovery(fields[20].equals("1"));
        if (isSet(fields[14])) builder.setTargetIsr(list(fields[14]));
        if (isSet(fields[15])) builder.setTargetReplicas(list(fields[15]));
        if (isSet(fields[16])) builder.setUncleanShutdownReplicas(list(fields[16]));
        if (isSet(fields[17])) builder.setTargetAdding(list(fields[17]));
        if (isSet(fields[18])) builder.setTargetRemoving(list(fields[18]));
        if (isSet(fields[19])) builder.setTargetLeaderRecoveryState(recovery(fields[19]));
        Optional<ApiMessageAndVersion> record = builder.build();
        PartitionRegistration after =
            record.isPresent() ? before.merge((PartitionChangeRecord) record.get().message()) : before;
        return text(after) + "|" + (record.isPresent() ? 1 : 0);
    }

    private PartitionChangeBuilder builder(PartitionRegistration before, String[] fields)
            throws ReflectiveOperationException {
        Set<Integer> electable = new HashSet<>(list(fields[10]));
        IntPredicate acceptable = electable::contains;
        int minIsr = Integer.parseInt(fields[11]);
        boolean elr = fields[12].equals("1");
        MetadataVersion version = MetadataVersion.IBP_4_0_IV3;
        if (elrInConstructor) {
            return (PartitionChangeBuilder) constructor.newInstance(before, TOPIC, 0, acceptable, version, minIsr, elr);
        }
        Object builder = constructor.newInstance(before, TOPIC, 0, acceptable, version, minIsr);
        PartitionChangeBuilder.class.getMethod("setEligibleLeaderReplicasEnabled", boolean.class).invoke(builder, elr);
        return (PartitionChangeBuilder) builder;
    }

    private static PartitionRegistration registration(String[] fields) {
        int[] replicas = array(fields[0]);
        Uuid[] directories = Arrays.stream(replicas).mapToObj(BuilderDriver::directory).toArray(Uuid[]::new);
        return new PartitionRegistration.Builder()
            .setReplicas(replicas)
            .setDirectories(directories)
            .setIsr(array(fields[1]))
            .setElr(array(fields[2]))
            .setLastKnownElr(array(fields[3]))
            .setAddingReplicas(array(fields[4]))
            .setRemovingReplicas(array(fields[5]))
            .setLeader(Integer.parseInt(fields[6]))
            .setLeaderEpoch(Integer.parseInt(fields[7]))
            .setLeaderRecoveryState(recovery(fields[8]))
            .setPartitionEpoch(Integer.parseInt(fields[9]))
            .build();
    }

    private static String text(PartitionRegistration p) {
        return String.join("|",
            join(p.replicas), join(p.isr), join(p.elr), join(p.lastKnownElr), join(p.addingReplicas),
            join(p.removingReplicas), Integer.toString(p.leader), Integer.toString(p.leaderEpoch),
            Integer.toString(p.leaderRecoveryState.value()), Integer.toString(p.partitionEpoch));
    }

    private static Uuid directory(int broker) {
        return new Uuid(966, 1000L + broker);
    }

    private static LeaderRecoveryState recovery(String field) {
        return LeaderRecoveryState.of(Byte.parseByte(field));
    }

    private static boolean isSet(String field) {
        return !field.equals("*");
    }

    private static String join(int[] ids) {
        return Arrays.stream(ids).mapToObj(Integer::toString).collect(Collectors.joining(","));
    }

    private static int[] array(String field) {
        return list(field).stream().mapToInt(Integer::intValue).toArray();
    }

    private static List<Integer> list(String field) {
        List<Integer> ids = new ArrayList<>();
        if (!field.isEmpty()) {
            for (String id : field.split(",")) ids.add(Integer.parseInt(id));
        }
        return ids;
    }
}
