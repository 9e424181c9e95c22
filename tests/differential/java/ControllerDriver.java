package org.apache.kafka.controller;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;

/**
 * Runs Apache Kafka's own controller managers (ReplicationControlManager, ClusterControlManager,
 * ConfigurationControlManager, FeatureControlManager, BrokerHeartbeatManager) on events that arrive as lines, and
 * answers each line with what the event was answered and with the whole state after it. There is no Raft: the records
 * that an event returns are replayed into the managers at once, as an active controller does.
 *
 * A line has fields separated by '|'; the first is the event's name, see {@link ControllerEvents}. An answer has the
 * error, details, features, brokers, topics and partitions, see {@link ControllerDump}. It lives in Kafka's package
 * because the managers do not let others in. One set of class files serves Kafka 4.0 to 4.3.
 */
public final class ControllerDriver {
    private ControllerDriver() {
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        ControllerEvents events = new ControllerEvents(false, 1);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                out.flush();
                continue;
            }
            String[] fields = line.split("\\|", -1);
            if (fields[0].equals("reset")) {
                events = new ControllerEvents(fields[1].equals("1"), Integer.parseInt(fields[2]));
                out.print("NONE|");
            } else {
                out.print(answer(events, fields));
            }
            out.print("|" + ControllerDump.text(events.controller()));
            out.print('\n');
        }
        out.flush();
    }

    private static String answer(ControllerEvents events, String[] fields) {
        try {
            return "NONE|" + events.handle(fields);
        } catch (ApiException e) {
            return Errors.forException(e).name() + "|";
        } catch (RuntimeException | ReflectiveOperationException e) {
            // Nothing that a client can provoke may do this: the controller resigns, and the next one starts from the
            // same records. A periodic task that fails is only run again.
            Throwable cause = e.getCause() == null ? e : e.getCause();
            if (cause instanceof ApiException) {
                return Errors.forException(cause).name() + "|";
            }
            if (!ControllerEvents.TASKS.contains(fields[0])) events.controller().failOver();
            System.err.println(String.join("|", fields) + ": " + cause);
            return Errors.UNKNOWN_SERVER_ERROR.name() + "|";
        }
    }
}
