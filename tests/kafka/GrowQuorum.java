// SPDX-License-Identifier: Apache-2.0
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RaftVoterEndpoint;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Uses a cluster as if nothing had happened: writes to a topic that is there, makes one, and adds voters.
 *
 * Arguments: the broker's address; a controller's address; a topic that is there; of each voter to add, its id, directory
 * id and port. Standard output: the offset of the record, the names of the topics, and the ids of the voters, a line each.
 */
public final class GrowQuorum {
    private static final int TRIES = 120;

    private GrowQuorum() {
    }

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            System.out.println(written(arguments[0], arguments[2]));
            admin.createTopics(Set.of(new NewTopic("made-after", 1, (short) 1))).all().get(60, TimeUnit.SECONDS);
            System.out.println(written(arguments[0], "made-after"));
            System.out.println(String.join(" ", new TreeSet<>(admin.listTopics().names().get(60, TimeUnit.SECONDS))));
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.controllers", arguments[1]))) {
            for (int at = 3; at < arguments.length; at += 3) {
                add(admin, Integer.parseInt(arguments[at]), arguments[at + 1], Integer.parseInt(arguments[at + 2]));
            }
            Set<String> voters = new TreeSet<>();
            admin.describeMetadataQuorum().quorumInfo().get(60, TimeUnit.SECONDS).voters()
                .forEach(voter -> voters.add(String.valueOf(voter.replicaId())));
            System.out.println(String.join(" ", voters));
        }
    }

    private static long written(String broker, String topic) throws Exception {
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (Producer<byte[], byte[]> producer = new KafkaProducer<>(Map.of("bootstrap.servers", broker), bytes, bytes)) {
            return producer.send(new ProducerRecord<>(topic, 0, null, new byte[10])).get(60, TimeUnit.SECONDS).offset();
        }
    }

    /** Add a voter; until it has fetched all of the log, and the change before is committed, the leader refuses it. */
    private static void add(Admin admin, int id, String directory, int port) throws Exception {
        Set<RaftVoterEndpoint> endpoints = Set.of(new RaftVoterEndpoint("CONTROLLER", "localhost", port));
        for (int tries = 0;; tries++) {
            try {
                admin.addRaftVoter(id, Uuid.fromString(directory), endpoints).all().get(60, TimeUnit.SECONDS);
                return;
            } catch (ExecutionException error) {
                if (tries == TRIES) {
                    throw error;
                }
                Thread.sleep(500);
            }
        }
    }
}
