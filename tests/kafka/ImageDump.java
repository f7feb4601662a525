// SPDX-License-Identifier: Apache-2.0
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Loads metadata records with Kafka's own loader, and writes the image as JSON, in the form of tests/tools/image/naive_cluster.py.
 *
 * Standard input, a line each: "story" begins anew; "batch BASE EPOCH TIMESTAMP HEX..." loads a batch of records;
 * "snapshot HEX..." loads the records of a snapshot, from which the story then goes on. Each batch and snapshot is answered by a line: the image after it,
 * or {"fault": OFFSET} with the first record that the loader refuses, after which the story has to end.
 */
public final class ImageDump {
    private static final ObjectMapper JSON = new ObjectMapper();

    private ImageDump() {
    }

    /** Records that are decoded when the loader asks for them, so that the last one asked for is the one it fails at. */
    private static final class Records extends AbstractList<ApiMessageAndVersion> {
        private final List<byte[]> values = new ArrayList<>();
        private int last = -1;

        Records(String[] words, int first) {
            for (int index = first; index < words.length; index++) {
                values.add(HexFormat.of().parseHex(words[index]));
            }
        }

        @Override
        public ApiMessageAndVersion get(int index) {
            last = index;
            ByteBuffer buffer = ByteBuffer.wrap(values.get(index));
            return MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(buffer), buffer.remaining());
        }

        @Override
        public int size() {
            return values.size();
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        MetadataImage[] image = {MetadataImage.EMPTY};
        boolean[] failed = {false};
        MetadataBatchLoader loader = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("story")) {
                image[0] = MetadataImage.EMPTY;
                failed[0] = false;
                loader = new MetadataBatchLoader(new LogContext(), Time.SYSTEM, (message, cause) -> {
                    failed[0] = true;
                    throw new IllegalStateException(message, cause);
                }, (delta, next, manifest) -> image[0] = next, (type, name) -> true);
                continue;
            }
            boolean isSnapshot = words[0].equals("snapshot");
            Records records = new Records(words, isSnapshot ? 1 : 4);
            long base = isSnapshot ? 0 : Long.parseLong(words[1]);
            Object answer;
            try {
                if (isSnapshot) {
                    MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
                    records.forEach(record -> delta.replay(record.message()));
                    delta.finishSnapshot();
                    image[0] = delta.apply(MetadataProvenance.EMPTY);
                    loader.resetToImage(image[0]);
                } else if (records.size() > 0) {
                    int epoch = Integer.parseInt(words[2]);
                    loader.loadBatch(Batch.data(base, epoch, Long.parseLong(words[3]), 1, records), LeaderAndEpoch.UNKNOWN);
                    loader.maybeFlushBatches(LeaderAndEpoch.UNKNOWN, true);
                }
                answer = described(image[0]);
            } catch (RuntimeException error) {
                answer = Map.of("fault", base + records.last, "why", String.valueOf(error.getCause()) + " " + error);
            }
            out.println(JSON.writeValueAsString(answer));
            out.flush();
        }
    }

    private static Map<String, Object> described(MetadataImage image) {
        Map<String, Object> found = new LinkedHashMap<>();
        Map<String, Object> features = new TreeMap<>(image.features().finalizedVersions());
        image.features().metadataVersion().ifPresent(version -> features.put("metadata.version", version.featureLevel()));
        found.put("features", features);
        found.put("topics", topics(image));
        Map<String, Object> configs = new TreeMap<>();
        image.configs().resourceData().forEach((owner, config) ->
            configs.put(owner.type().id() + ":" + owner.name(), config.data()));
        found.put("configs", configs);
        found.put("brokers", brokers(image));
        found.put("controllers", controllers(image));
        Map<String, Object> acls = new TreeMap<>();
        image.acls().acls().forEach((id, acl) -> acls.put(id.toString(), List.of(acl.resourceType().code(), acl.resourceName(),
            acl.patternType().code(), acl.principal(), acl.host(), acl.operation().code(), acl.permissionType().code())));
        found.put("acls", acls);
        Map<String, Object> scram = new TreeMap<>();
        image.scram().mechanisms().forEach((mechanism, users) -> users.forEach((user, data) ->
            scram.put(user + "/" + mechanism.type(), List.of(
                base64(data.salt()), base64(data.storedKey()), base64(data.serverKey()), data.iterations()))));
        found.put("scram", scram);
        found.put("quotas", quotas(image));
        Map<String, Object> tokens = new TreeMap<>();
        image.delegationTokens().tokens().forEach((id, data) -> {
            var token = data.tokenInformation();
            tokens.put(id, List.of(token.ownerAsString(), token.tokenRequesterAsString(),
                new ArrayList<>(token.renewersAsString()), token.issueTimestamp(), token.maxTimestamp(), token.expiryTimestamp()));
        });
        found.put("tokens", tokens);
        found.put("producer_ids", image.producerIds().isEmpty() ? Map.of() : Map.of("next", image.producerIds().nextProducerId()));
        return found;
    }

    private static Map<String, Object> topics(MetadataImage image) {
        Map<String, Object> topics = new TreeMap<>();
        image.topics().topicsById().forEach((id, topic) -> {
            Map<String, Object> partitions = new TreeMap<>();
            topic.partitions().forEach((number, partition) -> partitions.put(String.valueOf(number), partition(partition)));
            topics.put(id.toString(), Map.of("name", topic.name(), "partitions", partitions));
        });
        return topics;
    }

    private static Map<String, Object> partition(PartitionRegistration partition) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("replicas", partition.replicas);
        found.put("isr", partition.isr);
        found.put("removing", partition.removingReplicas);
        found.put("adding", partition.addingReplicas);
        found.put("leader", partition.leader);
        found.put("recovery", partition.leaderRecoveryState.value());
        found.put("leaderEpoch", partition.leaderEpoch);
        found.put("partitionEpoch", partition.partitionEpoch);
        found.put("directories", texts(List.of(partition.directories)));
        found.put("elr", partition.elr);
        found.put("lastKnownElr", partition.lastKnownElr);
        return found;
    }

    private static Map<String, Object> brokers(MetadataImage image) {
        Map<String, Object> brokers = new TreeMap<>();
        image.cluster().brokers().forEach((id, broker) -> {
            Map<String, Object> found = new LinkedHashMap<>();
            found.put("epoch", broker.epoch());
            found.put("incarnation", broker.incarnationId().toString());
            found.put("listeners", listeners(broker.listeners()));
            found.put("features", features(broker.supportedFeatures()));
            found.put("rack", broker.rack().orElse(null));
            found.put("fenced", broker.fenced());
            found.put("shutdown", broker.inControlledShutdown());
            found.put("directories", texts(broker.directories()));
            found.put("cordoned", broker.cordonedDirectories() == null ? null : texts(broker.cordonedDirectories()));
            brokers.put(String.valueOf(id), found);
        });
        return brokers;
    }

    private static Map<String, Object> controllers(MetadataImage image) {
        Map<String, Object> controllers = new TreeMap<>();
        image.cluster().controllers().forEach((id, controller) -> controllers.put(String.valueOf(id), Map.of(
            "incarnation", controller.incarnationId().toString(),
            "zk", controller.zkMigrationReady(),
            "listeners", listeners(controller.listeners()),
            "features", features(controller.supportedFeatures()))));
        return controllers;
    }

    private static Map<String, Object> quotas(MetadataImage image) {
        Map<String, Object> quotas = new TreeMap<>();
        image.clientQuotas().entities().forEach((entity, quota) -> {
            StringBuilder owner = new StringBuilder();
            new TreeMap<>(entity.entries()).forEach((type, name) -> owner.append(owner.length() == 0 ? "" : ",")
                .append(type).append("=").append(name == null ? "<default>" : name));
            quotas.put(owner.toString(), quota.quotas());
        });
        return quotas;
    }

    private static Map<String, Object> listeners(Map<String, Endpoint> listeners) {
        Map<String, Object> found = new TreeMap<>();
        listeners.forEach((name, each) -> found.put(name, List.of(each.host(), each.port(), each.securityProtocol().id)));
        return found;
    }

    private static Map<String, Object> features(Map<String, VersionRange> features) {
        Map<String, Object> found = new TreeMap<>();
        features.forEach((name, range) -> found.put(name, List.of(range.min(), range.max())));
        return found;
    }

    private static List<String> texts(List<?> values) {
        return values.stream().map(String::valueOf).toList();
    }

    private static String base64(byte[] data) {
        return Base64.getEncoder().encodeToString(data);
    }
}
