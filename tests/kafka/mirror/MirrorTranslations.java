// SPDX-License-Identifier: Apache-2.0

package org.apache.kafka.connect.mirror; // What the store reads records with is for its own package alone.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.OptionalLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Translates offsets by Kafka's store of offset syncs. Lines of standard input: "new BOOLEAN" begins with an empty store, which must
 * read to the end or need not, "loaded" says that it has, "sync UPSTREAM DOWNSTREAM" adds a sync; "ask UPSTREAM" answers with one
 * line: the offset, or "none".
 */
public class MirrorTranslations extends OffsetSyncStore {
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);

    private MirrorTranslations(boolean mustReadToEnd) {
        initializationMustReadToEnd = mustReadToEnd;
    }

    private String answer(String[] parts) {
        switch (parts[0]) {
            case "loaded":
                readToEnd = true;
                return null;
            case "sync":
                OffsetSync sync = new OffsetSync(PARTITION, Long.parseLong(parts[1]), Long.parseLong(parts[2]));
                handleRecord(new ConsumerRecord<>("s", 0, 0L, sync.recordKey(), sync.recordValue()));
                return null;
            case "ask":
                OptionalLong found = translateDownstream("g", PARTITION, Long.parseLong(parts[1]));
                return found.isPresent() ? Long.toString(found.getAsLong()) : "none";
            default:
                throw new IllegalArgumentException(parts[0]);
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream output = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        MirrorTranslations store = null;
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split(" ");
            if (parts[0].equals("new")) {
                store = new MirrorTranslations(Boolean.parseBoolean(parts[1]));
                continue;
            }
            String answer = store.answer(parts);
            if (answer != null) {
                output.println(answer);
            }
        }
        output.flush();
    }
}
