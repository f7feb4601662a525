// SPDX-License-Identifier: Apache-2.0
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes what MirrorMaker is to mirror: two partitions of orders, six transactions of tx.orders, one of which is aborted,
 * and internal-looking. A group commits offsets of orders.
 *
 * Arguments: the broker's address; how many records each partition of orders gets; the offset that the group commits in
 * both partitions. Topics are made unless they are there.
 */
public final class MirrorLoad {
    private static final int TRANSACTIONS = 6;
    private static final int ABORTED = 2;
    private static final int RECORDS_AT_ONCE = 10;
    private static final long TIMEOUT_S = 60;

    private MirrorLoad() {
    }

    public static void main(String[] arguments) throws Exception {
        String broker = arguments[0];
        int records = Integer.parseInt(arguments[1]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker))) {
            if (!admin.listTopics().names().get(TIMEOUT_S, TimeUnit.SECONDS).contains("orders")) {
                List<NewTopic> topics = List.of(
                    new NewTopic("orders", 2, (short) 1), new NewTopic("tx.orders", 1, (short) 1),
                    new NewTopic("internal-looking", 1, (short) 1));
                admin.createTopics(topics).all().get(TIMEOUT_S, TimeUnit.SECONDS);
            }
            try (Producer<byte[], byte[]> plain = producer(broker, null)) {
                for (int number = 0; number < records; number++) {
                    for (int partition = 0; partition < 2; partition++) {
                        plain.send(record("orders", partition, number));
                    }
                }
                for (int number = 0; number < RECORDS_AT_ONCE; number++) {
                    plain.send(record("internal-looking", 0, number));
                }
            }
            try (Producer<byte[], byte[]> exact = producer(broker, "load")) {
                exact.initTransactions();
                for (int transaction = 0; transaction < TRANSACTIONS; transaction++) {
                    exact.beginTransaction();
                    for (int number = 0; number < RECORDS_AT_ONCE; number++) {
                        exact.send(record("tx.orders", 0, number));
                    }
                    exact.flush();
                    if (transaction == ABORTED) {
                        exact.abortTransaction();
                    } else {
                        exact.commitTransaction();
                    }
                }
            }
            OffsetAndMetadata committed = new OffsetAndMetadata(Long.parseLong(arguments[2]));
            admin.alterConsumerGroupOffsets("readers", Map.of(
                new TopicPartition("orders", 0), committed, new TopicPartition("orders", 1), committed))
                .all().get(TIMEOUT_S, TimeUnit.SECONDS);
        }
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, int partition, int number) {
        byte[] key = number % 5 == 0 ? null : ("key-" + number % 7).getBytes();
        byte[] value = number % 11 == 3 ? null : number % 11 == 4 ? new byte[0] : ("value-" + number % 20).getBytes();
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, partition, 1750000000000L + number, key, value);
        if (number % 3 == 0) {
            record.headers().add("trace", ("t-" + number).getBytes()).add("empty", null).add("none", new byte[0]);
        }
        return record;
    }

    private static Producer<byte[], byte[]> producer(String broker, String transactionalId) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", broker);
        properties.put("linger.ms", "20");
        properties.put("compression.type", transactionalId == null ? "lz4" : "none");
        if (transactionalId != null) {
            properties.put("transactional.id", transactionalId);
        }
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }
}
