// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.QuorumController;
import org.apache.kafka.controller.QuorumFeatures;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.queue.EventQueue;
import org.apache.kafka.queue.KafkaEventQueue;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.RaftClient;
import org.apache.kafka.raft.internals.MemoryBatchReader;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.fault.FaultHandler;
import org.apache.kafka.snapshot.SnapshotReader;

/**
 * Replays metadata records with Kafka's own controller and its own loader, and says at which record each of them stops.
 *
 * It compiles with every release from 3.9 on. Standard input, a line each: "story" begins anew; "batch BASE EPOCH TIMESTAMP
 * HEX..." is a batch of records, and "snapshot END EPOCH TIMESTAMP HEX..." before any batch are those of a snapshot; "end" replays
 * the story, lets the controller become the active one, and is answered by one line: for the controller, the loader and the
 * activation, the offset (or -1; in the snapshot, that there) and the message of the first fault, by tabs.
 * Before that, one line has the features that the release's controllers support.
 */
public final class ReplayCheck {
    private static final int NODE = 1;

    private ReplayCheck() {
    }

    /** A batch; one with an end, which is otherwise -1, has all records of a snapshot. */
    private record Read(long base, int epoch, long timestamp, List<ApiMessageAndVersion> records, long snapshotEnd) {
        Batch<ApiMessageAndVersion> batch() {
            return Batch.data(base, epoch, timestamp, 1, records);
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        out.println(new TreeMap<>(supported()));
        List<String[]> lines = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("story")) {
                lines.clear();
            } else if (words[0].equals("batch") || words[0].equals("snapshot")) {
                lines.add(words);
            } else {
                out.println(String.join("\t", replayed(lines)));
                out.flush();
            }
        }
        System.exit(0);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, VersionRange> supported() throws Exception {
        for (Method method : QuorumFeatures.class.getMethods()) {
            if (method.getName().equals("defaultSupportedFeatureMap") || method.getName().equals("defaultFeatureMap")) {
                return (Map<String, VersionRange>) method.invoke(null, false);
            }
        }
        throw new IllegalStateException("QuorumFeatures has no map of features");
    }

    /** Decode batch by batch, as Kafka does: a record that cannot be read stops its whole batch. */
    private static List<String> replayed(List<String[]> lines) throws Exception {
        List<Read> reads = new ArrayList<>();
        String[] unreadable = {"-1", ""};
        long end = 0;
        for (String[] words : lines) {
            boolean isSnapshot = words[0].equals("snapshot");
            long number = Long.parseLong(words[1]);
            Read read = new Read(isSnapshot ? 0 : number, Integer.parseInt(words[2]), Long.parseLong(words[3]), new ArrayList<>(),
                isSnapshot ? number : -1);
            for (int index = 4; index < words.length && unreadable[0].equals("-1"); index++) {
                ByteBuffer buffer = ByteBuffer.wrap(HexFormat.of().parseHex(words[index]));
                try {
                    read.records().add(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(buffer), buffer.remaining()));
                } catch (RuntimeException error) {
                    unreadable = new String[] {String.valueOf(read.base() + index - 4), shown(error)};
                }
            }
            if (!unreadable[0].equals("-1")) {
                break;
            }
            end = isSnapshot ? number : read.base() + Math.max(1, words.length - 4);
            if (words.length > 4) {
                reads.add(read);
            }
        }
        List<String> answer = new ArrayList<>();
        String[] activation = {"-1", ""};
        String[] controller = controller(reads, end, unreadable, activation);
        String[] loader = loader(reads);
        for (String[] found : List.of(controller[0].equals("-1") ? unreadable : controller,
                                      loader[0].equals("-1") ? unreadable : loader, activation)) {
            answer.add(found[0]);
            answer.add(found[1]);
        }
        return answer;
    }

    private static String shown(Throwable error) {
        return String.valueOf(error).replaceAll("\\s+", " ");
    }

    private static String[] controller(List<Read> reads, long end, String[] unreadable, String[] activation) throws Exception {
        AtomicReference<String> fault = new AtomicReference<>();
        FaultHandler faults = (message, cause) -> {
            fault.compareAndSet(null, message + (cause == null ? "" : ": " + shown(cause)));
            return new RuntimeException(message, cause);
        };
        RaftClient.Listener<ApiMessageAndVersion>[] listener = new RaftClient.Listener[1];
        long[] logEnd = {end};
        InvocationHandler answers = (proxy, method, given) -> switch (method.getName()) {
            case "register" -> {
                listener[0] = (RaftClient.Listener<ApiMessageAndVersion>) given[0];
                yield null;
            }
            case "nodeId" -> OptionalInt.of(NODE);
            case "leaderAndEpoch" -> new LeaderAndEpoch(OptionalInt.of(NODE), 100);
            case "highWatermark" -> OptionalLong.of(logEnd[0]);
            case "logEndOffset" -> logEnd[0];
            case "prepareAppend" -> (logEnd[0] += ((List<?>) given[1]).size()) - 1;
            case "kraftVersion" -> method.getReturnType().getEnumConstants()[1];
            case "hashCode" -> System.identityHashCode(proxy);
            default -> null;
        };
        RaftClient<ApiMessageAndVersion> raft = (RaftClient<ApiMessageAndVersion>) Proxy.newProxyInstance(
            ReplayCheck.class.getClassLoader(), new Class<?>[] {RaftClient.class}, answers);
        QuorumController controller = new QuorumController.Builder(NODE, "cluster")
            .setRaftClient(raft)
            .setQuorumFeatures(new QuorumFeatures(NODE, supported(), List.of(NODE)))
            .setBootstrapMetadata(BootstrapMetadata.fromVersion(MetadataVersion.latestProduction(), "test"))
            .setConfigSchema(schema())
            .setFatalFaultHandler(faults)
            .setNonFatalFaultHandler(faults)
            .build();
        try {
            String[] found = {"-1", ""};
            for (Read read : reads) {
                if (read.snapshotEnd() < 0) {
                    listener[0].handleCommit(MemoryBatchReader.of(List.of(read.batch()), reader -> { }));
                } else {
                    listener[0].handleLoadSnapshot(snapshot(read));
                }
                await(controller);
                if (fault.get() != null) {
                    String offset = fault.get().replaceFirst(".* record at offset (\\d+) .*", "$1");
                    Matcher inSnapshot = Pattern.compile(" record from snapshot .* which was (\\d+) of ").matcher(fault.get());
                    if (inSnapshot.find()) {
                        offset = String.valueOf(Integer.parseInt(inSnapshot.group(1)) - 1);
                    }
                    return new String[] {offset, fault.get()};
                }
            }
            if (unreadable[0].equals("-1")) {
                listener[0].handleLeaderChange(new LeaderAndEpoch(OptionalInt.of(NODE), 100));
                await(controller);
                await(controller);
                activation[0] = fault.get() == null ? "-1" : String.valueOf(end);
                activation[1] = String.valueOf(fault.get());
            }
            return found;
        } finally {
            controller.beginShutdown();
            controller.close();
        }
    }

    /** The reader of a snapshot; the class of its id has moved. */
    @SuppressWarnings("unchecked")
    private static SnapshotReader<ApiMessageAndVersion> snapshot(Read read) throws ReflectiveOperationException {
        Class<?> idType = SnapshotReader.class.getMethod("snapshotId").getReturnType();
        Object id = idType.getConstructor(long.class, int.class).newInstance(read.snapshotEnd(), read.epoch());
        Iterator<Batch<ApiMessageAndVersion>> batches = List.of(read.batch()).iterator();
        return (SnapshotReader<ApiMessageAndVersion>) Proxy.newProxyInstance(
            ReplayCheck.class.getClassLoader(), new Class<?>[] {SnapshotReader.class}, (proxy, method, given) ->
                switch (method.getName()) {
                    case "hasNext" -> batches.hasNext();
                    case "next" -> batches.next();
                    case "snapshotId" -> id;
                    case "lastContainedLogOffset" -> read.snapshotEnd() - 1;
                    case "lastContainedLogEpoch" -> read.epoch();
                    case "lastContainedLogTimestamp" -> read.timestamp();
                    default -> null;
                });
    }

    /** The only config that a controller asks for when it becomes active. */
    private static KafkaConfigSchema schema() {
        String name = "min.insync.replicas";
        ConfigDef configs = new ConfigDef().define(name, ConfigDef.Type.INT, 1, ConfigDef.Importance.HIGH, "");
        return new KafkaConfigSchema(
            Map.of(ConfigResource.Type.BROKER, configs, ConfigResource.Type.TOPIC, configs),
            Map.of(name, List.of(new ConfigSynonym(name))));
    }

    private static void await(QuorumController controller) throws Exception {
        Field field = QuorumController.class.getDeclaredField("queue");
        field.setAccessible(true);
        CountDownLatch done = new CountDownLatch(1);
        EventQueue.Event event = done::countDown;
        ((KafkaEventQueue) field.get(controller)).append(event);
        done.await();
    }

    private static String[] loader(List<Read> reads) throws Exception {
        String[] found = {"-1", ""};
        MetadataBatchLoader loader = newLoader((message, cause) -> {
            throw new IllegalStateException(message, cause);
        });
        for (Read read : reads) {
            int[] last = {-1};
            if (read.snapshotEnd() >= 0) {
                MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
                try {
                    for (ApiMessageAndVersion record : read.records()) {
                        last[0]++;
                        delta.replay(record.message());
                    }
                    delta.finishSnapshot();
                    loader.resetToImage(delta.apply(MetadataProvenance.EMPTY));
                } catch (RuntimeException error) {
                    return new String[] {String.valueOf(last[0]), shown(error)};
                }
                continue;
            }
            List<ApiMessageAndVersion> counted = new java.util.AbstractList<>() {
                @Override
                public ApiMessageAndVersion get(int index) {
                    last[0] = index;
                    return read.records().get(index);
                }

                @Override
                public int size() {
                    return read.records().size();
                }
            };
            try {
                loader.loadBatch(Batch.data(read.base(), read.epoch(), read.timestamp(), 1, counted), LeaderAndEpoch.UNKNOWN);
                flush(loader);
            } catch (RuntimeException error) {
                Throwable why = error.getCause() == null ? error : error.getCause();
                return new String[] {String.valueOf(read.base() + last[0]), shown(why)};
            }
        }
        return found;
    }

    /** Apply what was loaded; 3.9 has no second parameter. */
    private static void flush(MetadataBatchLoader loader) throws ReflectiveOperationException {
        for (Method method : MetadataBatchLoader.class.getMethods()) {
            if (method.getName().equals("maybeFlushBatches")) {
                Object[] given = {LeaderAndEpoch.UNKNOWN, true};
                try {
                    method.invoke(loader, Arrays.copyOf(given, method.getParameterCount()));
                } catch (InvocationTargetException error) {
                    throw new IllegalStateException(error.getCause());
                }
            }
        }
    }

    /** Make a loader: the packages of its parameters, and their number, differ between releases. */
    private static MetadataBatchLoader newLoader(FaultHandler faults) throws Exception {
        Constructor<?> constructor = MetadataBatchLoader.class.getConstructors()[0];
        Class<?>[] types = constructor.getParameterTypes();
        Object[] given = new Object[types.length];
        for (int index = 0; index < types.length; index++) {
            if (types[index] == Time.class) {
                given[index] = Time.SYSTEM;
            } else if (types[index] == FaultHandler.class) {
                given[index] = faults;
            } else if (types[index].isInterface()) {
                given[index] = Proxy.newProxyInstance(ReplayCheck.class.getClassLoader(), new Class<?>[] {types[index]},
                    (proxy, method, arguments) -> method.getReturnType() == boolean.class ? true : null);
            } else {
                given[index] = types[index].getConstructor().newInstance();
            }
        }
        return (MetadataBatchLoader) constructor.newInstance(given);
    }
}
