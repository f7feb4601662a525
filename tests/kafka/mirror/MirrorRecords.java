// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.protocol.types.SchemaException;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.Heartbeat;
import org.apache.kafka.connect.mirror.OffsetSync;

/**
 * Reads and writes MirrorMaker's records: for each line of standard input, "TYPE KEY VALUE" with bytes as hexadecimal digits and
 * without blanks in them, one line: the fields, and then key and value as Kafka writes the record again; or "refused". Texts are
 * hexadecimal digits of UTF-8.
 */
public class MirrorRecords {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream output = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split(" ", -1);
            byte[] key = HEX.parseHex(parts[1]);
            byte[] value = HEX.parseHex(parts[2]);
            try {
                output.println(answer(parts[0], new ConsumerRecord<>("t", 0, 0L, key, value)));
            } catch (SchemaException error) {
                output.println("refused");
            }
        }
        output.flush();
    }

    private static String answer(String type, ConsumerRecord<byte[], byte[]> record) throws Exception {
        switch (type) {
            case "OFFSET_SYNC": {
                OffsetSync read = OffsetSync.deserializeRecord(record);
                return String.join(" ", text(read.topicPartition().topic()), "" + read.topicPartition().partition(),
                    "" + read.upstreamOffset(), "" + read.downstreamOffset(), written(read));
            }
            case "CHECKPOINT": {
                Checkpoint read = Checkpoint.deserializeRecord(record);
                return String.join(" ", text(read.consumerGroupId()), text(read.topicPartition().topic()),
                    "" + read.topicPartition().partition(), "" + read.upstreamOffset(), "" + read.downstreamOffset(),
                    text(read.metadata()), written(read));
            }
            default: {
                Heartbeat read = Heartbeat.deserializeRecord(record);
                return String.join(" ", text(read.sourceClusterAlias()), text(read.targetClusterAlias()),
                    "" + read.timestamp(), written(read));
            }
        }
    }

    private static String text(String text) {
        return "=" + HEX.formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String written(Object record) throws Exception {
        return "=" + HEX.formatHex(call(record, "recordKey")) + " =" + HEX.formatHex(call(record, "recordValue"));
    }

    private static byte[] call(Object record, String name) throws Exception {
        Method method = record.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return (byte[]) method.invoke(record);
    }
}
