/* SPDX-License-Identifier: BSD-2-Clause */
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The values and keys, drawn as multi_thread_send draws them. */
final class Payload {
    private static final int VALUES_MIN = 4096;
    private static final int KEYS_MIN = 1 << 16;
    private static final int KEYS_MAX = 1 << 20;

    final byte[][] values;
    final byte[][] keys; // null: records have none
    private long state;

    Payload(Options o) throws IOException {
        state = o.seed;
        values = o.payloadFile != null ? read(o.payloadFile)
            : make(o.recordSize);
        keys = o.keyRange == 0 ? null : keys(o);
    }

    /** splitmix64. */
    private long random() {
        state += 0x9e3779b97f4a7c15L;
        long z = state;
        z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
        z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
        return z ^ z >>> 31;
    }

    private int below(int bound) {
        return (int) Long.remainderUnsigned(random(), bound);
    }

    private byte[][] read(String path) throws IOException {
        byte[] all = Files.readAllBytes(Path.of(path));
        List<byte[]> lines = new ArrayList<>();
        int from = 0;
        for (int i = 0; i <= all.length; i++) {
            if (i == all.length ? from < i : all[i] == '\n') {
                lines.add(java.util.Arrays.copyOfRange(all, from, i));
                from = i + 1;
            }
        }
        if (lines.isEmpty()) {
            throw new Options.Wrong("--payload-file " + path + " is empty");
        }
        byte[][] out = new byte[Math.max(VALUES_MIN, lines.size())][];
        for (int i = 0; i < out.length; i++) {
            // a copy, so that they lie in the order they are sent in
            out[i] = lines.get(below(lines.size())).clone();
        }
        return out;
    }

    private byte[][] make(int size) {
        byte[][] out = new byte[VALUES_MIN][];
        for (int i = 0; i < out.length; i++) {
            StringBuilder b = new StringBuilder("{\"id\":" + below(1 << 30));
            while (b.length() < size) {
                b.append(",\"k").append(below(16)).append("\":")
                    .append(below(100000));
            }
            b.setLength(size);
            b.setCharAt(size - 1, '}');
            out[i] = b.toString().getBytes(StandardCharsets.ISO_8859_1);
        }
        return out;
    }

    private byte[][] keys(Options o) {
        int count = o.keyRange;
        if (o.keysRandom) {
            count = Math.min(Math.max(count, KEYS_MIN), KEYS_MAX);
        }
        String form = o.keySize > 0 ? "%0" + o.keySize + "d" : "%d";
        byte[][] out = new byte[count][];
        for (int i = 0; i < count; i++) {
            int key = o.keysRandom ? below(o.keyRange) : i;
            out[i] = String.format(form, key)
                .getBytes(StandardCharsets.ISO_8859_1);
        }
        return out;
    }

    double meanSize() {
        long total = 0;
        for (byte[] v : values) {
            total += v.length;
        }
        return (double) total / values.length;
    }
}
