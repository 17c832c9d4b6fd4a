/* SPDX-License-Identifier: BSD-2-Clause */
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/** A sending thread of one phase. */
final class Worker extends Thread {
    private final Run run;
    private final int index;
    private final long records;
    private final boolean paced;
    private final double intervalNs;
    private long startNs;
    private long sent;
    private int value;
    private int key;

    private final Semaphore arrived = new Semaphore(0);
    private final Future<?>[] futures;
    /* Set before a round; counted down where callbacks run. */
    private long wanted;

    Worker(Run run, int index, long records) {
        super("send-" + index);
        this.run = run;
        this.index = index;
        this.records = records;
        Options o = run.options;
        paced = o.paced;
        intervalNs = o.throughput > 0 ? 1e9 * o.threads / o.throughput : 0;
        value = (int) ((long) run.payload.values.length * index / o.threads);
        key = run.payload.keys == null ? 0
            : (int) ((long) run.payload.keys.length * index / o.threads);
        futures = o.futures ? new Future<?>[o.outstanding] : null;
    }

    private ProducerRecord<byte[], byte[]> next() {
        byte[] v = run.payload.values[value];
        byte[] k = null;
        if (++value == run.payload.values.length) {
            value = 0;
        }
        if (run.payload.keys != null) {
            k = run.payload.keys[key];
            if (++key == run.payload.keys.length) {
                key = 0;
            }
        }
        return new ProducerRecord<>(run.options.topic, k, v);
    }

    private long dueNs() {
        return startNs + (long) (sent * intervalNs);
    }

    private void pace() {
        long left;
        while ((left = dueNs() - System.nanoTime()) > 0) {
            LockSupport.parkNanos(left);
        }
    }

    /* Counted on the I/O thread. */
    private void count(RecordMetadata m, Exception e) {
        run.count(e);
        if (run.options.outstanding > 0 && --wanted == 0) {
            arrived.release();
        }
    }

    private final Callback plain = this::count;

    private Callback sampled() {
        long sentNs = paced ? dueNs() : System.nanoTime();
        return (m, e) -> {
            if (e == null) {
                run.latency.add(System.nanoTime() - sentNs);
            }
            count(m, e);
        };
    }

    /* A future's latency is taken by a callback, too. */
    private Callback sampledFuture() {
        long sentNs = System.nanoTime();
        return (m, e) -> {
            if (e == null) {
                run.latency.add(System.nanoTime() - sentNs);
            }
        };
    }

    private void sendOne(boolean sample, int slot) {
        if (futures == null) {
            run.producer.send(next(), sample ? sampled() : plain);
        } else {
            futures[slot] = run.producer.send(next(),
                sample ? sampledFuture() : null);
        }
        sent++;
    }

    private void sendRound(long n) {
        int every = run.sampleEvery;
        int until = 0;
        for (int i = 0; i < n; i++) {
            if (intervalNs > 0) {
                pace();
            }
            sendOne(until == 0, i);
            until = until == 0 ? every - 1 : until - 1;
        }
    }

    private void awaitRound(int n) throws InterruptedException {
        if (futures == null) {
            arrived.acquire();
            return;
        }
        // From the last on: the thread sleeps once for most of them.
        for (int i = n; i-- > 0;) {
            try {
                futures[i].get();
                run.countFuture(null);
            } catch (ExecutionException e) {
                run.countFuture(e.getCause());
            }
        }
    }

    @Override
    public void run() {
        Options o = run.options;
        if (paced) {
            Usage.sleepPrecisely();
        }
        startNs = System.nanoTime()
            + (long) (intervalNs / o.threads * index);
        try {
            for (long left = records; left > 0;) {
                long n = o.outstanding > 0 ? Math.min(left, o.outstanding)
                    : Math.min(left, 1 << 30);
                wanted = n;
                sendRound(n);
                if (o.outstanding > 0) {
                    awaitRound((int) n);
                }
                left -= n;
            }
        } catch (RuntimeException | InterruptedException e) {
            run.refuse(e);
        }
        Usage.threadEnds();
    }
}
