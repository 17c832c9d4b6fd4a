/* SPDX-License-Identifier: BSD-2-Clause */

import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.AbstractRecords;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.DefaultRecord;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;

/**
 * Prints record batches v2 as Kafka's own classes write them, with each codec,
 * and numbers of variable length.  The formats are in README.md.
 */
public final class GoldenBatches {
    /** One record to be appended. */
    record Input(long offset, long timestamp, byte[] key, byte[] value,
                 Header[] headers) { }

    /** What stands in a batch's header. */
    static final class Spec {
        long baseOffset = 0;
        long producerId = -1;
        short producerEpoch = -1;
        int baseSequence = -1;
        int leaderEpoch = -1;
        boolean transactional = false;
        TimestampType type = TimestampType.CREATE_TIME;
        long appendTime = -1;
        final List<Input> records = new ArrayList<>();

        Spec add(long timestamp, byte[] key, byte[] value, Header... headers) {
            return addAt(records.size(), timestamp, key, value, headers);
        }

        Spec addAt(long delta, long timestamp, byte[] key, byte[] value,
                   Header... headers) {
            records.add(new Input(delta, timestamp, key, value, headers));
            return this;
        }
    }

    private static final long NOW = 1700000000123L;

    public static void main(String[] args) throws Exception {
        Path dir = Path.of(args[0]);
        try (PrintStream out = open(dir, "batches.txt")) {
            plain(out);
            for (CompressionType codec : CompressionType.values())
                compressed(out, codec);
        }
        try (PrintStream out = open(dir, "numbers.txt")) {
            numbers(out);
        }
    }

    private static PrintStream open(Path dir, String file) throws Exception {
        PrintStream out = new PrintStream(dir.resolve(file).toFile(),
                                          StandardCharsets.US_ASCII);
        out.println("# Printed by GoldenBatches from Kafka's classes.");
        return out;
    }

    private static byte[] run(int c, int count) {
        byte[] b = new byte[count];
        java.util.Arrays.fill(b, (byte) c);
        return b;
    }

    private static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    private static Header header(String key, byte[] value) {
        return new RecordHeader(key, value);
    }

    /* -- uncompressed: ours must write the same bytes -- */

    private static void plain(PrintStream out) throws Exception {
        print(out, "nulls", new Spec().add(0, null, null));
        print(out, "empties", new Spec().add(NOW, new byte[0], new byte[0]));
        print(out, "keyed", new Spec().add(NOW, bytes("k"), bytes("v"))
            .add(NOW + 1, null, bytes("v")).add(NOW + 2, bytes("k"), null));
        print(out, "backwards", new Spec().add(NOW, null, bytes("a"))
            .add(NOW - 1, null, bytes("b")).add(NOW - 64, null, bytes("c"))
            .add(NOW - 65, null, bytes("d")).add(0, null, bytes("e"))
            .add(NOW + 64, null, bytes("f")));
        print(out, "to_the_end_of_time", new Spec().add(0, null, null)
            .add(Long.MAX_VALUE, null, null));
        print(out, "from_the_end_of_time",
              new Spec().add(Long.MAX_VALUE, null, null).add(0, null, null));
        print(out, "headers", headers());
        print(out, "lengths", lengths());
        print(out, "offsets", offsets());
        print(out, "identity", identity());
        print(out, "transaction", transaction());
        print(out, "append_time", appendTime());
    }

    private static Spec headers() {
        Header[] many = new Header[200];
        for (int i = 0; i < many.length; i++)
            many[i] = header("h" + i % 7, i % 3 == 0 ? null : run('x', i));
        return new Spec()
            .add(NOW, null, null, header("", new byte[0]))
            .add(NOW, bytes("k"), bytes("v"), header("a", null))
            .add(NOW, bytes("k"), bytes("v"), header("a", bytes("1")),
                 header("a", bytes("2")), header("b", bytes("3")))
            .add(NOW, bytes("k"), bytes("v"), header("\u00e9\u20ac",
                                                     bytes("\ud83d\ude00")))
            .add(NOW, null, bytes("v"), many);
    }

    /* Around every length at which a varint takes one byte more. */
    private static Spec lengths() {
        Spec s = new Spec();
        for (int at : new int[] { 0, 64, 8192, 1048576 })
            for (int n = Math.max(0, at - 2); n <= at + 1; n++)
                s.add(NOW, run('k', n % 4096), run('v', n));
        for (int n = 45; n < 64; n++) /* and of the record's own length */
            s.add(NOW, null, run('w', n));
        return s;
    }

    private static Spec offsets() {
        Spec s = new Spec();
        s.baseOffset = 1L << 40;
        for (int delta : new int[] { 0, 1, 63, 64, 8191, 8192, 1048575,
                                     1048576, 134217727, 134217728,
                                     Integer.MAX_VALUE })
            s.addAt(delta, NOW, null, bytes("o"));
        return s;
    }

    private static Spec identity() {
        Spec s = new Spec().add(NOW, null, bytes("i"));
        s.producerId = Long.MAX_VALUE;
        s.producerEpoch = Short.MAX_VALUE;
        s.baseSequence = Integer.MAX_VALUE;
        s.leaderEpoch = 77;
        return s;
    }

    private static Spec transaction() {
        Spec s = new Spec().add(NOW, null, bytes("t"));
        s.producerId = 1;
        s.producerEpoch = 0;
        s.baseSequence = 0;
        s.transactional = true;
        return s;
    }

    private static Spec appendTime() {
        Spec s = new Spec().add(NOW, null, bytes("l")).add(NOW + 5, null, null);
        s.type = TimestampType.LOG_APPEND_TIME;
        s.appendTime = NOW + 1000;
        return s;
    }

    /* -- compressed: ours must read the same records -- */

    private static void compressed(PrintStream out, CompressionType codec)
            throws Exception {
        Compression c = Compression.of(codec).build();
        byte[] noise = new byte[3000];
        Random random = new Random(codec.id);
        random.nextBytes(noise);
        Spec text = new Spec();
        for (int i = 0; i < 100; i++)
            text.add(NOW + i, bytes("key-" + i % 10),
                     bytes("{\"n\":" + i + ",\"text\":\"" + "ab".repeat(i % 9)
                           + "\"}"), header("h", bytes("" + i)));
        print(out, codec.name + "_one", c, new Spec().add(NOW, null, null));
        print(out, codec.name + "_text", c, text);
        print(out, codec.name + "_noise", c,
              new Spec().add(NOW, noise, noise));
        print(out, codec.name + "_blocks", c, /* larger than any codec's */
              new Spec().add(NOW, run('a', 70000), run('b', 200000))
              .add(NOW, noise, run('c', 300000)).add(NOW, null, noise));
    }

    private static void print(PrintStream out, String name, Spec s)
            throws Exception {
        print(out, name, Compression.NONE, s);
    }

    private static void print(PrintStream out, String name, Compression c,
                              Spec s) throws Exception {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 24);
        MemoryRecordsBuilder b = MemoryRecords.builder(
            buffer, (byte) 2, c, s.type, s.baseOffset, s.appendTime,
            s.producerId, s.producerEpoch, s.baseSequence, s.transactional,
            s.leaderEpoch);
        out.println("batch " + name + " " + c.type().name);
        for (Input r : s.records) {
            b.appendWithOffset(s.baseOffset + r.offset, r.timestamp, r.key,
                               r.value, r.headers);
            record(out, s, r);
        }
        b.close();
        ByteBuffer built = b.build().buffer();
        header(out, built);
        out.println("bytes " + Hex.word(built));
        out.println("end");
    }

    /** Fields by their place in the bytes, as the protocol's guide has them. */
    private static void header(PrintStream out, ByteBuffer b) {
        int at = b.position();
        out.println("= base_offset " + b.getLong(at));
        out.println("= batch_length " + b.getInt(at + 8));
        out.println("= partition_leader_epoch " + b.getInt(at + 12));
        out.println("= magic " + b.get(at + 16));
        out.println("= crc " + (b.getInt(at + 17) & 0xffffffffL));
        out.println("= attributes " + b.getShort(at + 21));
        out.println("= last_offset_delta " + b.getInt(at + 23));
        out.println("= base_timestamp_ms " + b.getLong(at + 27));
        out.println("= max_timestamp_ms " + b.getLong(at + 35));
        out.println("= producer_id " + b.getLong(at + 43));
        out.println("= producer_epoch " + b.getShort(at + 51));
        out.println("= base_sequence " + b.getInt(at + 53));
        out.println("= record_count " + b.getInt(at + 57));
    }

    private static void record(PrintStream out, Spec s, Input r) {
        long delta = r.timestamp - s.records.get(0).timestamp;
        out.printf("record %d %d %d %d %s %s", delta, r.offset,
            DefaultRecord.sizeInBytes((int) r.offset, delta,
                r.key == null ? -1 : r.key.length,
                r.value == null ? -1 : r.value.length, r.headers),
            AbstractRecords.estimateSizeInBytesUpperBound((byte) 2,
                CompressionType.NONE, r.key, r.value, r.headers),
            Hex.word(r.key), Hex.word(r.value));
        for (Header h : r.headers)
            out.print(" " + Hex.word(h.key()) + " " + Hex.word(h.value()));
        out.println();
    }

    /* -- numbers -- */

    private static void numbers(PrintStream out) {
        for (int bits = 0; bits <= 63; bits++)
            for (long near = -1; near <= 1; near++)
                for (long sign : new long[] { 1, -1 })
                    number(out, sign * ((1L << bits) + near));
    }

    private static void number(PrintStream out, long v) {
        ByteBuffer b = ByteBuffer.allocate(10);
        new ByteBufferAccessor(b).writeVarlong(v);
        out.println("varlong " + v + " " + Hex.word(b.flip()));
        if (v != (int) v)
            return;
        b = ByteBuffer.allocate(10);
        new ByteBufferAccessor(b).writeVarint((int) v);
        out.println("varint " + v + " " + Hex.word(b.flip()));
        b = ByteBuffer.allocate(10);
        new ByteBufferAccessor(b).writeUnsignedVarint((int) v);
        out.println("uvarint " + Integer.toUnsignedString((int) v) + " "
                    + Hex.word(b.flip()));
    }

    private GoldenBatches() { }
}
