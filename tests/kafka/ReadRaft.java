// SPDX-License-Identifier: Apache-2.0
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.Writable;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.common.serialization.RecordSerde;

/**
 * Reads files of batches as Kafka's raft readers do.
 *
 * Arguments: files. Standard output, a line a file: how many records were read, or what was thrown.
 */
public final class ReadRaft {
    private static final class Values implements RecordSerde<byte[]> {
        public int recordSize(byte[] value, ObjectSerializationCache cache) {
            return value.length;
        }

        public void write(byte[] value, ObjectSerializationCache cache, Writable out) {
            out.writeByteArray(value);
        }

        public byte[] read(Readable in, int size) {
            return in.readArray(size);
        }
    }

    private ReadRaft() {
    }

    public static void main(String[] arguments) throws Exception {
        for (String file : arguments) {
            ByteBuffer buffer = ByteBuffer.wrap(Files.readAllBytes(Path.of(file)));
            System.out.println(read(buffer));
        }
    }

    private static String read(ByteBuffer buffer) {
        int count = 0;
        try (var batches = new RecordsIterator<>(
            org.apache.kafka.common.record.internal.MemoryRecords.readableRecords(buffer), new Values(), BufferSupplier.NO_CACHING, 8 << 20, true, new LogContext()
        )) {
            while (batches.hasNext()) {
                var batch = batches.next();
                count += batch.records().size() + batch.controlRecords().size();
            }
        } catch (RuntimeException error) {
            return String.valueOf(error.getMessage());
        }
        return String.valueOf(count);
    }
}
