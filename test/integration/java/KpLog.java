/* SPDX-License-Identifier: BSD-2-Clause */
import java.io.BufferedOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Utils;

/**
 * Reads segment files with Kafka's own classes, checks each batch with them,
 * and prints one line a record:
 *
 *   PARTITION OFFSET TIMESTAMP KV_HASH ALL_HASH CODEC JAVA_PARTITION BATCH_TIME
 *
 * The hashes are 64-bit FNV-1a of key and value, and of these and the headers,
 * each with its length in front (-1: null), as kp_sender writes them into its
 * journal.  JAVA_PARTITION is where Java's producer would have put the key (-1:
 * it has none, or COUNT is 0) in a topic of COUNT partitions.
 * BATCH_TIME is the largest timestamp of the record's batch.
 *
 * Arguments: COUNT, then PARTITION:FILE of each segment.
 */
public class KpLog {
    private static final long FNV_OFFSET = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    private final PrintStream out;
    private final int count;

    private KpLog(PrintStream out, int count) {
        this.out = out;
        this.count = count;
    }

    public static void main(String[] args) throws Exception {
        try (PrintStream out = new PrintStream(new BufferedOutputStream(
                System.out, 1 << 16))) {
            KpLog self = new KpLog(out, Integer.parseInt(args[0]));
            for (int i = 1; i < args.length; i++) {
                int colon = args[i].indexOf(':');
                self.segment(args[i].substring(0, colon),
                    new File(args[i].substring(colon + 1)));
            }
        }
    }

    private void segment(String partition, File file) throws Exception {
        try (FileRecords records = FileRecords.open(file, false)) {
            for (RecordBatch batch : records.batches()) {
                batch.ensureValid();
                if (batch.magic() != RecordBatch.MAGIC_VALUE_V2) {
                    throw new IllegalStateException("magic " + batch.magic());
                }
                int n = 0;
                for (Record record : batch) {
                    record.ensureValid();
                    print(partition, batch, record);
                    n++;
                }
                if (n != batch.countOrNull()) {
                    throw new IllegalStateException(n + " records, "
                        + batch.countOrNull() + " promised");
                }
            }
        }
    }

    private void print(String partition, RecordBatch batch, Record r) {
        long h = bytes(bytes(FNV_OFFSET, r.key()), r.value());
        long all = number(h, r.headers().length);
        for (Header header : r.headers()) {
            all = bytes(all, ByteBuffer.wrap(Utils.utf8(header.key())));
            all = bytes(all, header.value() == null ? null
                : ByteBuffer.wrap(header.value()));
        }
        out.print(partition);
        out.print(' ');
        out.print(r.offset());
        out.print(' ');
        out.print(r.timestamp());
        out.print(' ');
        out.print(Long.toHexString(h));
        out.print(' ');
        out.print(Long.toHexString(all));
        out.print(' ');
        out.print(batch.compressionType().id);
        out.print(' ');
        out.print(javaPartition(r.key()));
        out.print(' ');
        out.println(batch.maxTimestamp());
    }

    private int javaPartition(ByteBuffer key) {
        if (key == null || count == 0) {
            return -1;
        }
        return Utils.toPositive(Utils.murmur2(Utils.toArray(key))) % count;
    }

    private static long octet(long h, int b) {
        return (h ^ (b & 0xff)) * FNV_PRIME;
    }

    private static long number(long h, int n) {
        for (int shift = 24; shift >= 0; shift -= 8) {
            h = octet(h, n >> shift);
        }
        return h;
    }

    private static long bytes(long h, ByteBuffer b) {
        if (b == null) {
            return number(h, -1);
        }
        h = number(h, b.remaining());
        for (int i = b.position(); i < b.limit(); i++) {
            h = octet(h, b.get(i));
        }
        return h;
    }
}
