/* SPDX-License-Identifier: BSD-2-Clause */

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Bytes as the golden files have them: hex, where a byte that comes eight times
 * or more in a row is written once, as "61*300.".
 */
final class Hex {
    private static final int RUN_MIN = 8;

    static String of(byte[] b) {
        StringBuilder out = new StringBuilder();
        for (int i = 0, run; i < b.length; i += run) {
            run = 1;
            while (i + run < b.length && b[i + run] == b[i])
                run++;
            String pair = String.format("%02x", b[i] & 0xff);
            if (run >= RUN_MIN)
                out.append(pair).append('*').append(run).append('.');
            else
                out.append(pair.repeat(run));
        }
        return out.toString();
    }

    /** null is "null", and no bytes are "-", so that a line has its columns. */
    static String word(byte[] b) {
        return b == null ? "null" : b.length == 0 ? "-" : of(b);
    }

    static String word(ByteBuffer b) {
        byte[] copy = new byte[b.remaining()];
        b.duplicate().get(copy);
        return word(copy);
    }

    static String word(String s) {
        return word(s == null ? null : s.getBytes(StandardCharsets.UTF_8));
    }

    static byte[] parse(String word) {
        if (word.equals("null"))
            return null;
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int i = word.equals("-") ? 1 : 0; i < word.length(); ) {
            byte b = (byte) Integer.parseInt(word.substring(i, i + 2), 16);
            int run = 1;
            i += 2;
            if (i < word.length() && word.charAt(i) == '*') {
                int end = word.indexOf('.', i);
                run = Integer.parseInt(word.substring(i + 1, end));
                i = end + 1;
            }
            while (run-- > 0)
                out.write(b);
        }
        return out.toByteArray();
    }

    private Hex() { }
}
