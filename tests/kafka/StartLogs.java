// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Lets Kafka's log manager load the log directory of a broker, and open the logs of the replicas that are assigned to it.
 *
 * Standard input, a line each: "broker DIRECTORY NODE" begins anew; "partition NAME NUMBER TOPIC-ID REPLICAS" is one of the
 * metadata, its replicas with commas; "end" is answered by a line for each replica of the node: the partition, by a tab, and "found",
 * "new" or the name of an exception; and by an empty line.
 */
public final class StartLogs {
    private StartLogs() {
    }

    private record Partition(TopicPartition name, Uuid topicId, List<Integer> replicas) {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        String[] broker = {};
        List<Partition> partitions = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("broker")) {
                broker = words;
                partitions.clear();
            } else if (words[0].equals("partition")) {
                List<Integer> replicas = Arrays.stream(words[4].split(",")).map(Integer::valueOf).toList();
                TopicPartition name = new TopicPartition(words[1], Integer.parseInt(words[2]));
                partitions.add(new Partition(name, Uuid.fromString(words[3]), replicas));
            } else {
                out.print(started(new File(broker[1]), Integer.parseInt(broker[2]), partitions));
                out.println();
                out.flush();
            }
        }
        System.exit(0);
    }

    private static String started(File home, int node, List<Partition> partitions) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        LogManager manager = new LogManager(List.of(home), List.of(), resource -> new Properties(), new LogConfig(Map.of()),
            new CleanerConfig(false), 1, 60_000, 60_000, 60_000, 60_000, 300_000, new ProducerStateManagerConfig(86_400_000, false),
            600_000, scheduler, new BrokerTopicStats(), new LogDirFailureChannel(1), Time.SYSTEM, false, 60_000, null);
        StringBuilder text = new StringBuilder();
        try {
            manager.loadLogs(new LogConfig(Map.of()), new HashMap<>(), log -> isStray(log, node, partitions));
            for (Partition each : partitions) {
                if (each.replicas().contains(node)) {
                    text.append(each.name()).append('\t').append(opened(manager, each)).append('\n');
                }
            }
        } finally {
            manager.shutdown();
            scheduler.shutdown();
        }
        return text.toString();
    }

    /** As the broker's publisher of metadata asks, before it opens any log. */
    private static boolean isStray(UnifiedLog log, int node, List<Partition> partitions) {
        if (log.topicId().isEmpty()) {
            return true;
        }
        int number = log.topicPartition().partition();
        List<Integer> replicas = partitions.stream()
            .filter(each -> each.topicId().equals(log.topicId().get()) && each.name().partition() == number)
            .findFirst().map(Partition::replicas).orElse(List.of());
        return LogManager.isStrayReplica(replicas, node, log);
    }

    private static String opened(LogManager manager, Partition partition) throws Exception {
        boolean isThere = manager.getLog(partition.name()).isPresent();
        try {
            manager.getOrCreateLog(partition.name(), Optional.of(partition.topicId()));
        } catch (RuntimeException error) {
            return error.getClass().getSimpleName();
        }
        return isThere ? "found" : "new";
    }
}
