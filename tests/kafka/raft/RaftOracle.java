// SPDX-License-Identifier: Apache-2.0
// Drives Kafka's own raft client, without a network, by commands on standard input. Each command is answered by lines
// that say what the client did, and a line with a dot.
package org.apache.kafka.raft;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.feature.SupportedVersionRange;
import org.apache.kafka.common.message.FetchSnapshotResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.raft.internals.KRaftControlRecordStateMachine;
import org.apache.kafka.raft.internals.StringSerde;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.RecordsSnapshotWriter;
import org.apache.kafka.snapshot.Snapshots;

public final class RaftOracle {
    /** Draws the same number, reduced to the bound, until it is told another one. */
    private static final class DictatedRandom extends MockableRandom {
        private int value;

        DictatedRandom() {
            super(0);
        }

        @Override
        public int nextInt(int bound) {
            return value % bound;
        }
    }

    private final PrintStream out;
    private RaftClientTestContext.Builder builder;
    private RaftClientTestContext context;
    private RaftClientTestContext.MockListener listener;
    private DictatedRandom random;
    private Map<Integer, RaftRequest.Outbound> sent;
    private boolean isDead;

    private RaftOracle(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false);
        RaftOracle oracle = new RaftOracle(out);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            oracle.run(line.split(" "));
            out.println(".");
            out.flush();
        }
    }

    private void run(String[] words) throws Exception {
        try {
            switch (words[0]) {
                case "new" -> create(options(words));
                case "draw" -> random.value = Integer.parseInt(words[1]);
                case "sleep" -> context.time.sleep(Long.parseLong(words[1]));
                case "request" -> deliver(words[1], Short.parseShort(words[2]), words[3], words[4]);
                case "response" -> respond(Integer.parseInt(words[1]), Short.parseShort(words[2]), words[3]);
                case "fail" -> fail(Integer.parseInt(words[1]), Errors.valueOf(words[2]));
                case "restart" -> restart();
                case "log" -> log();
                case "listen" -> listen();
                case "resign" -> call(() -> context.client.resign(Integer.parseInt(words[1])));
                case "shutdown" -> call(() -> context.client.shutdown(Integer.parseInt(words[1])));
                case "upgrade" -> call(() -> context.client.upgradeKRaftVersion(
                    Integer.parseInt(words[1]), KRaftVersion.fromFeatureLevel(Short.parseShort(words[2])), words[3].equals("1")));
                case "snapshot" -> snapshot(
                    new OffsetAndEpoch(Long.parseLong(words[1]), Integer.parseInt(words[2])), Long.parseLong(words[3]), Integer.parseInt(words[4]));
                case "clean" -> clean();
                case "append" -> append(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
                case "poll" -> poll();
                default -> throw new IllegalArgumentException(words[0]);
            }
        } catch (RuntimeException error) {
            fatal(error);
        }
    }

    private void fatal(Throwable error) {
        isDead = true;
        out.println("fatal " + error.getClass().getSimpleName() + " " + String.valueOf(error.getMessage()).replace('\n', ' '));
    }

    private static Map<String, String> options(String[] words) {
        Map<String, String> found = new HashMap<>();
        for (int i = 1; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            found.put(pair[0], pair[1]);
        }
        return found;
    }

    /** id and a directory id whose both halves are the id, as in "2" or, for another directory, "2/7". */
    private static ReplicaKey key(String text) {
        String[] parts = text.split("/");
        int id = Integer.parseInt(parts[0]);
        long directory = parts.length == 1 ? id : Long.parseLong(parts[1]);
        return ReplicaKey.of(id, new Uuid(directory, directory));
    }

    private void create(Map<String, String> options) throws Exception {
        ReplicaKey local = key(options.get("local"));
        VoterSet voters = VoterSetTest.voterSet(Stream.of(options.get("voters").split(",")).map(RaftOracle::key));
        builder = new RaftClientTestContext.Builder(local.id(), local.directoryId().get())
            .withCanBecomeVoter(options.get("controller").equals("1"))
            .withAutoJoin(options.get("join").equals("1"))
            .withFetchSnapshotMaxBytes(Integer.parseInt(options.get("chunk")))
            .withRaftProtocol(RaftClientTestContext.RaftProtocol.valueOf(options.get("protocol")))
            .withBootstrapServers(Optional.of(servers(options.get("bootstrap"))));
        builder.withLocalListeners(Endpoints.fromInetSocketAddresses(
            Map.of(MockNetworkChannel.LISTENER_NAME, RaftClientTestContext.mockAddress(local.id()))));
        random = new DictatedRandom();
        Field field = RaftClientTestContext.Builder.class.getDeclaredField("random");
        field.setAccessible(true);
        field.set(builder, random);
        random.value = Integer.parseInt(options.get("draw"));
        if (options.get("kraft").equals("1")) {
            builder.withBootstrapSnapshot(Optional.of(voters));
        } else {
            builder.withStaticVoters(voters.voterIds());
        }
        if (options.containsKey("log")) {
            for (String run : options.get("log").split(",")) {
                String[] parts = run.split("x");
                builder.appendToLog(Integer.parseInt(parts[0]), Collections.nCopies(Integer.parseInt(parts[1]), "r"));
            }
        }
        if (options.containsKey("snapshot")) {
            String[] parts = options.get("snapshot").split("@");
            OffsetAndEpoch id = new OffsetAndEpoch(Long.parseLong(parts[0]), Integer.parseInt(parts[1]));
            boolean isDynamic = options.get("kraft").equals("1");
            writeSnapshot(id, isDynamic ? Optional.of(voters) : Optional.empty());
            if (options.containsKey("deleted")) {
                builder.deleteBeforeSnapshot(id);
            }
        }
        int epoch = Integer.parseInt(options.get("epoch"));
        if (options.containsKey("leader")) {
            builder.withElectedLeader(epoch, Integer.parseInt(options.get("leader")));
        } else if (options.containsKey("voted")) {
            builder.withVotedCandidate(epoch, key(options.get("voted")));
        } else {
            builder.withUnknownLeader(epoch);
        }
        start();
    }

    private void writeSnapshot(OffsetAndEpoch id, Optional<VoterSet> voters) {
        MockLog log = (MockLog) hidden(builder, RaftClientTestContext.Builder.class, "log");
        RecordsSnapshotWriter.Builder snapshot = new RecordsSnapshotWriter.Builder()
            .setTime((Time) hidden(builder, RaftClientTestContext.Builder.class, "time"))
            .setKraftVersion(voters.isPresent() ? KRaftVersion.KRAFT_VERSION_1 : KRaftVersion.KRAFT_VERSION_0)
            .setVoterSet(voters)
            .setRawSnapshotWriter(log.createNewSnapshotUnchecked(id).get());
        try (RecordsSnapshotWriter<String> writer = snapshot.build(new StringSerde())) {
            writer.freeze();
        }
    }

    /** Lose what was not flushed, and start again, as Kafka's log does: at the latest snapshot if the log ends before it. */
    private void restart() throws Exception {
        context.log.reopen();
        MockLog log = context.log;
        boolean isEmpty = ((List<?>) hidden(log, MockLog.class, "batches")).isEmpty();
        if (log.latestSnapshotId().filter(id -> isEmpty || id.offset() > log.endOffset().offset()).isPresent()) {
            log.truncateToLatestSnapshot();
        }
        start();
    }

    private void start() throws Exception {
        isDead = false;
        sent = new HashMap<>();
        context = builder.build();
        listener = context.listener;
        out.println("config " + context.electionTimeoutMs() + " " + context.fetchTimeoutMs + " " + context.requestTimeoutMs() + " "
            + context.retryBackoffMs + " " + context.electionBackoffMaxMs + " " + context.fetchMaxWaitMs + " "
            + context.fetchMaxBytes + " " + context.clusterId + " " + context.channel.listenerName().value() + " "
            + context.time.milliseconds());
        poll();
    }

    private static List<InetSocketAddress> servers(String text) {
        List<InetSocketAddress> found = new ArrayList<>();
        for (String each : text.split(",")) {
            found.add(InetSocketAddress.createUnresolved(each.split(":")[0], Integer.parseInt(each.split(":")[1])));
        }
        return found;
    }

    private void deliver(String api, short version, String token, String hex) {
        ApiKeys key = ApiKeys.valueOf(api);
        ApiMessage message = key.messageType.newRequest();
        message.read(new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(hex))), version);
        RaftRequest.Inbound inbound = new RaftRequest.Inbound(
            context.channel.listenerName(), context.channel.newCorrelationId(), version, message, context.time.milliseconds());
        RaftClientTestContext receiver = context;
        inbound.completion.whenComplete((response, error) -> {
            if (response != null && receiver == context) {
                withoutNulls(response.data());
                out.println("response " + token + " " + ApiKeys.forId(response.data().apiKey()) + " " + encode(response.data(), version));
            }
        });
        context.client.handle(inbound);
        poll();
    }

    /** Append records that the client collects until it is polled; the answer is the last offset, or the exception. */
    private void append(int epoch, int count) {
        String answer;
        try {
            answer = String.valueOf(context.client.prepareAppend(epoch, Collections.nCopies(count, "r")));
            context.client.schedulePreparedAppend();
        } catch (RuntimeException error) {
            answer = error.getClass().getSimpleName();
        }
        out.println("called " + answer);
        poll();
    }

    /** Call the client as its application does; the answer is the name of the exception, or "done". */
    private void call(Runnable what) {
        String answer = "done";
        try {
            what.run();
        } catch (RuntimeException error) {
            answer = error.getClass().getSimpleName();
        }
        out.println("called " + answer);
        poll();
    }

    /** Take the listener away, and register another one. */
    private void listen() {
        context.client.unregister(listener);
        listener = new RaftClientTestContext.MockListener(context.client.nodeId());
        context.client.register(listener);
        poll();
    }

    /** Take a snapshot of the application's state, with some records. */
    private void snapshot(OffsetAndEpoch id, long lastTimestamp, int count) {
        call(() -> context.client.createSnapshot(id, lastTimestamp).ifPresentOrElse(writer -> {
            try (writer) {
                if (count > 0) {
                    writer.append(Collections.nCopies(count, "s"));
                }
                writer.freeze();
            }
        }, () -> {
            throw new NoSuchElementException();
        }));
    }

    /** Do what the client's cleaner asks of its log once a minute, and the log of Kafka's tests does not do. */
    private void clean() {
        context.log.latestSnapshotId().ifPresent(context.log::deleteBeforeSnapshot);
        poll();
    }

    private void respond(int correlationId, short version, String hex) {
        RaftRequest.Outbound request = sent.remove(correlationId);
        ApiMessage message = ApiKeys.forId(request.data().apiKey()).messageType.newResponse();
        message.read(new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(hex))), version);
        context.channel.mockReceive(new RaftResponse.Inbound(correlationId, message, request.destination()));
        poll();
    }

    /** Let a request fail as the network does: with an error that no peer has sent. */
    private void fail(int correlationId, Errors error) {
        RaftRequest.Outbound request = sent.remove(correlationId);
        ApiMessage message = RaftUtil.errorResponse(ApiKeys.forId(request.data().apiKey()), error);
        context.channel.mockReceive(new RaftResponse.Inbound(correlationId, message, request.destination()));
        poll();
    }

    private void poll() {
        int idle = 0;
        for (int i = 0; i < 30 && idle < 3 && !isDead; i++) {
            int read = listener.numCommittedBatches();
            context.client.poll();
            rewind();
            idle = read == listener.numCommittedBatches() ? idle + 1 : 0;
            for (RaftRequest.Outbound each : context.channel.drainSendQueue()) {
                idle = 0;
                sent.put(each.correlationId(), each);
                out.println("request " + each.correlationId() + " " + ApiKeys.forId(each.data().apiKey()) + " "
                    + each.destination().id() + " " + each.destination().host() + " " + each.destination().port() + " " + encode(each.data(), each.data().highestSupportedVersion()));
            }
            if (!context.messageQueue.isEmpty()) {
                idle = 0;
            }
        }
        state();
    }

    /**
     * After a truncation, let Kafka read the control records that replace the truncated ones. It goes on at the old log
     * end, a defect that would leave it with other voters than its log has.
     */
    private void rewind() {
        Object state = hidden(context.client, KafkaRaftClient.class, "partitionState");
        try {
            Field field = KRaftControlRecordStateMachine.class.getDeclaredField("nextOffset");
            field.setAccessible(true);
            field.setLong(state, Math.min(field.getLong(state), context.log.endOffset().offset()));
        } catch (ReflectiveOperationException error) {
            throw new AssertionError(error);
        }
    }

    private void state() {
        QuorumState quorum = context.client.quorum();
        String role = quorum.isLeader() ? "Leader" : quorum.isCandidate() ? "Candidate" : quorum.isProspective() ? "Prospective"
            : quorum.isFollower() ? "Follower" : quorum.isResigned() ? "Resigned" : "Unattached";
        ElectionState election = storedElection();
        String voted = election.optionalVotedKey()
            .map(each -> each.id() + "/" + each.directoryId().map(Uuid::toString).orElse("-")).orElse("-");
        out.println("state " + role + " " + quorum.epoch() + " " + election.epoch() + " " + election.leaderIdOrSentinel() + " " + voted + " "
            + context.client.highWatermark().orElse(-1) + " " + context.log.endOffset().offset() + " " + context.log.lastFetchedEpoch() + " "
            + listener.currentLeaderAndEpoch().epoch() + " " + listener.currentLeaderAndEpoch().leaderId().orElse(-1) + " "
            + listener.lastCommitOffset().orElse(-1));
    }

    /** Print every record, the voters and kraft.version, and every snapshot but the bootstrap one, with its bytes. */
    @SuppressWarnings("unchecked")
    private void log() {
        StringBuilder text = new StringBuilder("log " + context.log.startOffset());
        for (MockLog.LogBatch batch : context.log.readBatches(context.log.startOffset(), OptionalLong.empty())) {
            text.append(" ").append(batch.epoch()).append(batch.isControlBatch() ? "c" : "d");
            for (MockLog.LogEntry entry : batch.entries()) {
                text.append("|").append(entry.offset()).append(",").append(entry.record().timestamp());
                text.append(",").append(hex(entry.record().key())).append(",").append(hex(entry.record().value()));
            }
        }
        out.println(text);
        KRaftControlRecordStateMachine state = (KRaftControlRecordStateMachine) hidden(context.client, KafkaRaftClient.class, "partitionState");
        StringBuilder voters = new StringBuilder("voters " + state.lastKraftVersion().featureLevel());
        List<VoterSet.VoterNode> nodes = new ArrayList<>(state.lastVoterSet().voterNodes());
        nodes.sort((one, other) -> Integer.compare(one.voterKey().id(), other.voterKey().id()));
        for (VoterSet.VoterNode each : nodes) {
            InetSocketAddress address = each.listeners().address(context.channel.listenerName()).orElse(null);
            voters.append(" ").append(each.voterKey().id()).append("/").append(each.voterKey().directoryId().map(Uuid::toString).orElse("-"));
            voters.append("@").append(address == null ? "-" : address.getHostString() + ":" + address.getPort());
            SupportedVersionRange levels = (SupportedVersionRange) hidden(each, VoterSet.VoterNode.class, "supportedKRaftVersion");
            voters.append("/").append(levels.min()).append("-").append(levels.max());
        }
        out.println(voters);
        StringBuilder snapshots = new StringBuilder("snapshots");
        for (OffsetAndEpoch each : ((Map<OffsetAndEpoch, ?>) hidden(context.log, MockLog.class, "snapshots")).keySet()) {
            if (each.equals(Snapshots.BOOTSTRAP_SNAPSHOT_ID)) {
                continue;
            }
            ByteBuffer bytes = ((MemoryRecords) context.log.readSnapshot(each).get().records()).buffer();
            snapshots.append(" ").append(each.offset()).append("@").append(each.epoch()).append(":").append(hex(bytes));
        }
        out.println(snapshots);
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return "-";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    private ElectionState storedElection() {
        return ((QuorumStateStore) hidden(context, RaftClientTestContext.class, "quorumStateStore")).readElectionState().get();
    }

    /** The value of a private field. */
    private static Object hidden(Object object, Class<?> kind, String name) {
        try {
            Field field = kind.getDeclaredField(name);
            field.setAccessible(true);
            return field.get(object);
        } catch (ReflectiveOperationException error) {
            throw new AssertionError(error);
        }
    }

    /** Kafka leaves the bytes of a snapshot out of an error, and cannot encode that. */
    private static void withoutNulls(ApiMessage message) {
        if (message instanceof FetchSnapshotResponseData response) {
            response.topics().forEach(topic -> topic.partitions().forEach(each -> {
                if (each.unalignedRecords() == null) {
                    each.setUnalignedRecords(MemoryRecords.EMPTY);
                }
            }));
        }
    }

    private static String encode(ApiMessage message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return version + " " + HexFormat.of().formatHex(buffer.array());
    }
}
