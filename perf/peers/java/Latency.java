/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * The histogram of perf/lib/latency.c: 128 steps to each doubling.  Samples
 * come from the producer's one I/O thread.
 */
final class Latency {
    private static final int STEP_BITS = 7;
    private static final int STEPS = 1 << STEP_BITS;

    private final long[] buckets = new long[STEPS * 34];
    private long count;
    private long sumNs;
    private long maxNs;

    void add(long ns) {
        ns = Math.max(ns, 0);
        int i = (int) ns;
        if (ns >= STEPS) {
            int doubling = 63 - Long.numberOfLeadingZeros(ns) - STEP_BITS;
            i = (doubling + 1) * STEPS + (int) ((ns >> doubling) - STEPS);
        }
        buckets[Math.min(i, buckets.length - 1)]++;
        count++;
        sumNs += ns;
        maxNs = Math.max(maxNs, ns);
    }

    private static long top(int i) {
        if (i < STEPS) {
            return i;
        }
        return ((long) (STEPS + i % STEPS + 1) << i / STEPS - 1) - 1;
    }

    long count() {
        return count;
    }

    /** In microseconds; -1: nothing was sampled. */
    double us(double share) {
        long seen = 0;
        for (int i = 0; i < buckets.length && count > 0; i++) {
            seen += buckets[i];
            if (seen >= share * count && seen > 0) {
                return Math.min(top(i), maxNs) / 1e3;
            }
        }
        return count > 0 ? maxNs / 1e3 : -1;
    }

    double meanUs() {
        return count > 0 ? sumNs / 1e3 / count : -1;
    }

    double maxUs() {
        return count > 0 ? maxNs / 1e3 : -1;
    }
}
