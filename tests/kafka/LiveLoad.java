// SPDX-License-Identifier: Apache-2.0
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Gives a broker work: topics with retention and with compaction, transactions that are committed and aborted, and topics
 * that are made and deleted. Once standard input ends, one more topic is made, and used.
 *
 * Arguments: the broker's address; how many transactions to make; a file to make when half of them are made, and one when
 * all are. Standard output: a line once the topics are there, and one with the counts at the end.
 */
public final class LiveLoad {
    private static final int RECORDS_AT_ONCE = 200;
    private static final byte[] VALUE = new byte[1000];

    private LiveLoad() {
    }

    public static void main(String[] arguments) throws Exception {
        String broker = arguments[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker))) {
            String size = String.valueOf(1024 * 1024);
            Map<String, String> deleting = Map.of(
                "segment.bytes", size, "retention.bytes", "2000000", "file.delete.delay.ms", "500");
            Map<String, String> compacting = Map.of(
                "segment.bytes", size, "cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01",
                "file.delete.delay.ms", "500");
            List<NewTopic> topics = List.of(
                new NewTopic("deleted", 2, (short) 1).configs(deleting),
                new NewTopic("compacted", 2, (short) 1).configs(compacting),
                new NewTopic("transactions", 2, (short) 1).configs(deleting));
            admin.createTopics(topics).all().get(60, TimeUnit.SECONDS);
            System.out.println("ready");
            System.out.flush();
            work(broker, admin, Integer.parseInt(arguments[1]), Path.of(arguments[2]), Path.of(arguments[3]));
        }
    }

    private static void work(String broker, Admin admin, int wanted, Path half, Path whole) throws Exception {
        long records = 0;
        long transactions = 0;
        long made = 0;
        List<String> there = new ArrayList<>();
        try (Producer<byte[], byte[]> plain = producer(broker, null); Producer<byte[], byte[]> exact = producer(broker, "live")) {
            exact.initTransactions();
            while (transactions < wanted) {
                for (int number = 0; number < RECORDS_AT_ONCE; number++, records++) {
                    byte[] key = String.valueOf(records % 500).getBytes();
                    plain.send(new ProducerRecord<>(number % 2 == 0 ? "deleted" : "compacted", key, VALUE));
                }
                exact.beginTransaction();
                for (int number = 0; number < RECORDS_AT_ONCE / 4; number++) {
                    exact.send(new ProducerRecord<>("transactions", null, VALUE));
                }
                exact.flush();
                if (transactions++ % 3 == 0) {
                    exact.abortTransaction();
                } else {
                    exact.commitTransaction();
                }
                if (transactions % 20 == 0) {
                    String name = "short-lived-" + made++;
                    use(name, admin, plain);
                    there.add(name);
                    if (there.size() > 3) {
                        admin.deleteTopics(List.of(there.remove(0))).all().get(60, TimeUnit.SECONDS);
                    }
                }
                if (transactions == wanted / 2) {
                    Files.createFile(half);
                }
                plain.flush();
                Thread.sleep(20);
            }
            Files.createFile(whole);
            System.in.readAllBytes();
            use("last", admin, plain);
            plain.flush();
        }
        System.out.println(records + " " + transactions + " " + made);
    }

    private static void use(String newTopic, Admin admin, Producer<byte[], byte[]> producer) throws Exception {
        admin.createTopics(List.of(new NewTopic(newTopic, 2, (short) 1))).all().get(60, TimeUnit.SECONDS);
        producer.send(new ProducerRecord<>(newTopic, VALUE));
    }

    private static Producer<byte[], byte[]> producer(String broker, String transactionalId) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", broker);
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        settings.put("linger.ms", "5");
        if (transactionalId != null) {
            settings.put("transactional.id", transactionalId);
        }
        return new KafkaProducer<>(settings);
    }
}
