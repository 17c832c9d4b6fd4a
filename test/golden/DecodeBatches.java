/* SPDX-License-Identifier: BSD-2-Clause */

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Utils;

/**
 * Reads files of record batches, in the format of batches.txt, with Kafka's
 * own classes: the crc, the codec, the header, and every record must be what
 * the file says.  Exits with 1 at the first that is not.
 */
public final class DecodeBatches {
    private static long batches, records;
    private final String title;
    private final Map<String, String> header = new HashMap<>();
    private final List<String[]> expected = new ArrayList<>();
    private byte[] bytes;

    private DecodeBatches(String title) {
        this.title = title;
    }

    public static void main(String[] args) throws Exception {
        for (String file : args)
            decode(Path.of(file));
        if (batches == 0)
            throw new IllegalStateException("no batches in "
                                            + Arrays.toString(args));
        System.out.println(batches + " batches, " + records
                           + " records as expected");
    }

    private static void decode(Path file) throws Exception {
        DecodeBatches now = null;
        for (String line : Files.readAllLines(file)) {
            String[] word = line.split(" ");
            switch (word[0]) {
            case "batch":
                now = new DecodeBatches(line);
                break;
            case "record":
                now.expected.add(word);
                break;
            case "=":
                now.header.put(word[1], word[2]);
                break;
            case "bytes":
                now.bytes = Hex.parse(word[1]);
                break;
            case "end":
                now.check();
                break;
            default:
                if (!line.startsWith("#"))
                    throw new IllegalStateException(line);
            }
        }
    }

    private void check() {
        try {
            MemoryRecords all = MemoryRecords.readableRecords(
                ByteBuffer.wrap(bytes));
            int count = 0;
            for (MutableRecordBatch batch : all.batches()) {
                count++;
                checkBatch(batch);
            }
            same("batches", 1, count);
            same("size", bytes.length, all.validBytes());
        } catch (RuntimeException e) {
            System.err.println(title + ": " + e);
            System.exit(1);
        }
        batches++;
    }

    private void checkBatch(MutableRecordBatch batch) {
        batch.ensureValid();
        same("codec", title.substring(title.lastIndexOf(' ') + 1),
             batch.compressionType().name);
        field("base_offset", batch.baseOffset());
        field("partition_leader_epoch", batch.partitionLeaderEpoch());
        field("magic", batch.magic());
        field("last_offset_delta", batch.lastOffset() - batch.baseOffset());
        field("max_timestamp_ms", batch.maxTimestamp());
        field("producer_id", batch.producerId());
        field("producer_epoch", batch.producerEpoch());
        field("base_sequence", batch.baseSequence());
        field("record_count", batch.countOrNull());
        int i = 0;
        for (Record r : batch) {
            same("enough records", true, i < expected.size());
            checkRecord(batch, r, expected.get(i++));
            records++;
        }
        same("records", expected.size(), i);
    }

    private void checkRecord(MutableRecordBatch batch, Record r, String[] w) {
        long base = Long.parseLong(header.get("base_timestamp_ms"));
        boolean append =
            batch.timestampType() == TimestampType.LOG_APPEND_TIME;
        r.ensureValid();
        same("timestamp", append ? batch.maxTimestamp()
                                 : base + Long.parseLong(w[1]),
             r.timestamp());
        same("offset", batch.baseOffset() + Long.parseLong(w[2]), r.offset());
        same("size", Integer.parseInt(w[3]), r.sizeInBytes());
        same("key", w[5], word(r.key()));
        same("value", w[6], word(r.value()));
        Header[] h = r.headers();
        same("headers", (w.length - 7) / 2, h.length);
        for (int i = 0; i < h.length; i++) {
            same("header key", w[7 + 2 * i], Hex.word(h[i].key()));
            same("header value", w[8 + 2 * i], Hex.word(h[i].value()));
        }
    }

    private static String word(ByteBuffer b) {
        return Hex.word(b == null ? null : Utils.toArray(b));
    }

    private void field(String name, Number got) {
        same(name, Long.parseLong(header.get(name)), got.longValue());
    }

    private void same(String what, Object want, Object got) {
        if (!Objects.equals(want, got))
            throw new IllegalStateException(what + ": want " + want + ", got "
                                            + got);
    }
}
