// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Loads a segment of a metadata log with Kafka's own reader, which checks the CRC of each batch, and its own loader, and prints how much that was. */
public final class LoadImage {
    private static final int MAX_BATCH_SIZE = 8 * 1024 * 1024;

    private LoadImage() {
    }

    public static void main(String[] arguments) throws Exception {
        AtomicReference<MetadataImage> image = new AtomicReference<>(MetadataImage.EMPTY);
        MetadataBatchLoader loader = new MetadataBatchLoader(new LogContext(), Time.SYSTEM, (message, cause) -> {
            throw new IllegalStateException(message, cause);
        }, (delta, next, manifest) -> image.set(next), (action, batch) -> true);
        long count = 0;
        try (FileRecords records = FileRecords.open(new File(arguments[0]), false);
             RecordsIterator<ApiMessageAndVersion> batches = new RecordsIterator<>(
                 records, MetadataRecordSerde.INSTANCE, BufferSupplier.create(), MAX_BATCH_SIZE, true, new LogContext())) {
            while (batches.hasNext()) {
                Batch<ApiMessageAndVersion> batch = batches.next();
                if (!batch.records().isEmpty()) {
                    loader.loadBatch(batch, LeaderAndEpoch.UNKNOWN);
                    count += batch.records().size();
                }
            }
        }
        loader.maybeFlushBatches(LeaderAndEpoch.UNKNOWN, true);
        System.out.println(count + " records, " + image.get().topics().topicsById().size() + " topics");
    }
}
