// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.LogFetchInfo;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.VoterSet;
import org.apache.kafka.raft.internals.KRaftControlRecordStateMachine;
import org.apache.kafka.server.common.serialization.RecordSerde;
import org.apache.kafka.snapshot.RawSnapshotReader;

/**
 * Lets Kafka's raft client read the control records of a snapshot and of the log after it, as it does when it starts.
 *
 * It compiles with every release from 3.9 on. Standard input, a line each: "snapshot OFFSET EPOCH HEX" is the bytes of a snapshot;
 * "batch BASE NEXT HEX" is a batch of the log; "end" is answered by one line: where it stopped ("-" nowhere, "snapshot", or the
 * base offset of a batch), kraft.version, the number of voters and the message, by tabs.
 */
public final class ControlReplay {
    private static final int MAX_BATCH = 8 << 20;

    private ControlReplay() {
    }

    private record Piece(long next, byte[] bytes) {
    }

    /** What is read, and where the reader is: at the base offset of a batch, or at SNAPSHOT. */
    private static final class Files {
        private static final long SNAPSHOT = -1;
        private final TreeMap<Long, Piece> batches = new TreeMap<>();
        private Object snapshotId;
        private byte[] snapshot;
        private long start;
        private long at = SNAPSHOT;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        Files files = new Files();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("snapshot")) {
                files.start = Long.parseLong(words[1]);
                files.snapshotId = idType().getConstructor(long.class, int.class).newInstance(files.start, Integer.parseInt(words[2]));
                files.snapshot = HexFormat.of().parseHex(words[3]);
            } else if (words[0].equals("batch")) {
                byte[] bytes = HexFormat.of().parseHex(words[3]);
                files.batches.put(Long.parseLong(words[1]), new Piece(Long.parseLong(words[2]), bytes));
            } else {
                out.println(String.join("\t", answer(files)));
                out.flush();
                files = new Files();
            }
        }
        System.exit(0);
    }

    private static String[] answer(Files files) throws Exception {
        KRaftControlRecordStateMachine machine = machine(log(files));
        try {
            machine.updateState();
        } catch (RuntimeException error) {
            String where = files.at == Files.SNAPSHOT ? "snapshot" : String.valueOf(files.at);
            return new String[] {where, "-", "-", String.valueOf(error).replaceAll("\\s+", " ")};
        }
        int voters = machine.lastVoterSet().voterIds().size();
        return new String[] {"-", String.valueOf(machine.lastKraftVersion().featureLevel()), String.valueOf(voters), ""};
    }

    /** The log, whose interface has another name in each of two ages. */
    private static Object log(Files files) {
        Class<?> type = Arrays.stream(KRaftControlRecordStateMachine.class.getConstructors()[0].getParameterTypes())
            .filter(each -> each.getSimpleName().matches("RaftLog|ReplicatedLog")).findFirst().orElseThrow();
        return Proxy.newProxyInstance(ControlReplay.class.getClassLoader(), new Class<?>[] {type}, (proxy, method, given) ->
            switch (method.getName()) {
                case "startOffset" -> files.start;
                case "endOffset" -> new LogOffsetMetadata(files.batches.isEmpty() ? files.start : files.batches.lastEntry().getValue().next());
                case "latestSnapshot" -> Optional.ofNullable(files.snapshot == null ? null : snapshot(files));
                case "latestSnapshotId" -> Optional.ofNullable(files.snapshotId);
                case "read" -> {
                    files.at = (long) given[0];
                    Object records = records(files.batches.get(files.at).bytes());
                    Constructor<?> made = LogFetchInfo.class.getConstructors()[0];
                    yield made.newInstance(records, new LogOffsetMetadata(files.at));
                }
                case "hashCode" -> System.identityHashCode(proxy);
                default -> null;
            });
    }

    private static Object snapshot(Files files) {
        Class<?>[] types = {RawSnapshotReader.class};
        return Proxy.newProxyInstance(ControlReplay.class.getClassLoader(), types, (proxy, method, given) ->
            switch (method.getName()) {
                case "snapshotId" -> files.snapshotId;
                case "sizeInBytes" -> (long) files.snapshot.length;
                case "records" -> records(files.snapshot);
                default -> null;
            });
    }

    private static Class<?> idType() throws NoSuchMethodException {
        return RawSnapshotReader.class.getMethod("snapshotId").getReturnType();
    }

    /** The batches of some bytes; their class has moved. */
    private static Object records(byte[] bytes) throws Exception {
        Class<?> type;
        try {
            type = Class.forName("org.apache.kafka.common.record.internal.MemoryRecords");
        } catch (ClassNotFoundException older) {
            type = Class.forName("org.apache.kafka.common.record.MemoryRecords");
        }
        return type.getMethod("readableRecords", ByteBuffer.class).invoke(null, ByteBuffer.wrap(bytes));
    }

    /** The parameters of the state machine, and their number, differ between releases. */
    private static KRaftControlRecordStateMachine machine(Object log) throws Exception {
        Constructor<?> constructor = KRaftControlRecordStateMachine.class.getConstructors()[0];
        Class<?>[] types = constructor.getParameterTypes();
        Object[] given = new Object[types.length];
        for (int index = 0; index < types.length; index++) {
            given[index] = parameter(types[index], log);
        }
        return (KRaftControlRecordStateMachine) constructor.newInstance(given);
    }

    private static Object parameter(Class<?> type, Object log) throws Exception {
        if (type.isInstance(log)) {
            return log;
        } else if (type == VoterSet.class) {
            return VoterSet.empty();
        } else if (type == RecordSerde.class) {
            return MetadataRecordSerde.INSTANCE;
        } else if (type.getSimpleName().equals("BufferSupplier")) {
            return type.getMethod("create").invoke(null);
        } else if (type == int.class) {
            return MAX_BATCH;
        } else if (type.isInterface()) {
            return Proxy.newProxyInstance(ControlReplay.class.getClassLoader(), new Class<?>[] {type}, (proxy, method, given) -> null);
        }
        for (Constructor<?> each : type.getConstructors()) {
            if (each.getParameterCount() == 0) {
                return each.newInstance();
            } else if (Arrays.equals(each.getParameterTypes(), new Class<?>[] {Metrics.class, String.class})) {
                return each.newInstance(new Metrics(), "raft");
            }
        }
        throw new IllegalStateException("no way to make a " + type);
    }
}
