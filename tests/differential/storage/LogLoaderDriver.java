import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Map;
import java.util.Optional;

/**
 * Loads replicas' directories as a broker does at its start, and says what the logs hold then.
 *
 * A line in: directory, 1 after a clean shutdown or 0, log start and recovery point from the checkpoints, saved high
 * watermark. A line out: log start, log end, high watermark, and the leader epochs as epoch:start; or what was thrown.
 * The directories are changed.
 */
public final class LogLoaderDriver {
    private LogLoaderDriver() { }

    public static void main(String[] arguments) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        PrintStream out = System.out;
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(load(line.split("\t"), scheduler));
        }
        out.flush();
        System.exit(0);
    }

    private static String load(String[] fields, KafkaScheduler scheduler) {
        try {
            UnifiedLog log = UnifiedLog.create(new File(fields[0]), new LogConfig(Map.of()), Long.parseLong(fields[2]),
                Long.parseLong(fields[3]), scheduler, new BrokerTopicStats(), Time.SYSTEM, 900_000,
                new ProducerStateManagerConfig(86_400_000, true), 600_000, new LogDirFailureChannel(1),
                fields[1].equals("1"), Optional.empty());
            log.updateHighWatermark(Long.parseLong(fields[4]));
            StringBuilder text = new StringBuilder();
            text.append(log.logStartOffset()).append(' ').append(log.logEndOffset()).append(' ').append(log.highWatermark());
            for (EpochEntry entry : log.leaderEpochCache().epochEntries()) {
                text.append(' ').append(entry.epoch()).append(':').append(entry.startOffset());
            }
            return text.toString();
        } catch (Throwable thrown) {
            return "failed " + thrown.getClass().getSimpleName() + ": " + String.valueOf(thrown.getMessage()).split("\n")[0];
        }
    }
}
