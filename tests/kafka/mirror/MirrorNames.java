// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.connect.mirror.ConfigPropertyFilter;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;
import org.apache.kafka.connect.mirror.DefaultTopicFilter;
import org.apache.kafka.connect.mirror.IdentityReplicationPolicy;
import org.apache.kafka.connect.mirror.MirrorSourceConnector;
import org.apache.kafka.connect.mirror.ReplicationPolicy;
import org.apache.kafka.connect.mirror.SourceAndTarget;
import org.apache.kafka.connect.mirror.TopicFilter;

/**
 * Says what MirrorMaker's policies make of names, a line of tab-separated fields for each line of standard input:
 *
 *   policy CLASS TARGET {KEY VALUE}   configures a policy, its topic filter and a connector to the cluster TARGET; no answer
 *   name TOPIC                        source, upstream, original; then seven digits: heartbeats, checkpoints, MM2-internal,
 *                                     internal, cycle, passes the filter, is replicated
 *   alias ALIAS TOPIC                 the remote topic; and the names of heartbeats, offset-syncs and checkpoints
 *
 * A text of an answer stands after "=", and null is "~".
 */
public class MirrorNames {
    private static ReplicationPolicy policy;
    private static TopicFilter filter;
    private static MirrorSourceConnector connector;

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] fields = line.split("\t", -1);
            switch (fields[0]) {
                case "policy" -> configure(fields);
                case "name" -> output.println(ofName(fields[1]));
                case "alias" -> output.println(ofAlias(fields[1], fields[2]));
                default -> throw new IllegalArgumentException(line);
            }
        }
        output.flush();
    }

    private static void configure(String[] fields) throws Exception {
        Map<String, Object> properties = new HashMap<>();
        for (int i = 3; i < fields.length; i += 2) {
            properties.put(fields[i], fields[i + 1]);
        }
        policy = fields[1].equals("identity") ? new IdentityReplicationPolicy() : new DefaultReplicationPolicy();
        ((Configurable) policy).configure(properties);
        filter = new DefaultTopicFilter();
        filter.configure(properties);
        Constructor<MirrorSourceConnector> constructor = MirrorSourceConnector.class.getDeclaredConstructor(
            SourceAndTarget.class, ReplicationPolicy.class, TopicFilter.class, ConfigPropertyFilter.class);
        constructor.setAccessible(true);
        connector = constructor.newInstance(new SourceAndTarget("source", fields[2]), policy, filter, null);
        Object heartbeats = properties.get("heartbeats.replication.enabled");
        if (heartbeats != null) {
            Field enabled = MirrorSourceConnector.class.getDeclaredField("heartbeatsReplicationEnabled");
            enabled.setAccessible(true);
            enabled.setBoolean(connector, Boolean.parseBoolean((String) heartbeats));
        }
    }

    private static String ofName(String topic) throws Exception {
        boolean[] answers = {
            policy.isHeartbeatsTopic(topic),
            policy.isCheckpointsTopic(topic),
            policy.isMM2InternalTopic(topic),
            policy.isInternalTopic(topic),
            asked("isCycle", topic),
            filter.shouldReplicateTopic(topic),
            asked("shouldReplicateTopic", topic),
        };
        StringBuilder digits = new StringBuilder();
        for (boolean answer : answers) {
            digits.append(answer ? '1' : '0');
        }
        return String.join("\t", text(policy.topicSource(topic)), text(policy.upstreamTopic(topic)),
            text(policy.originalTopic(topic)), digits);
    }

    private static String ofAlias(String alias, String topic) {
        return String.join("\t", text(policy.formatRemoteTopic(alias, topic)), text(policy.heartbeatsTopic()),
            text(policy.offsetSyncsTopic(alias)), text(policy.checkpointsTopic(alias)));
    }

    private static boolean asked(String method, String topic) throws Exception {
        Method found = MirrorSourceConnector.class.getDeclaredMethod(method, String.class);
        found.setAccessible(true);
        return (boolean) found.invoke(connector, topic);
    }

    private static String text(String value) {
        return value == null ? "~" : "=" + value;
    }
}
