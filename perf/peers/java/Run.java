/* SPDX-License-Identifier: BSD-2-Clause */
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What the threads of a run share. */
final class Run {
    private static final int SAMPLE_EVERY = 64;
    private static final int SAMPLES_MIN = 2000;

    final Options options;
    final Payload payload;
    final KafkaProducer<byte[], byte[]> producer;
    final int sampleEvery;
    Latency latency; // of this phase; set while nothing is sent

    private final AtomicLong acked = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final AtomicLong ackedFutures = new AtomicLong();
    private volatile Throwable failure;
    private volatile Throwable refusal;

    Run(Options o) throws Exception {
        options = o;
        payload = new Payload(o);
        sampleEvery = o.throughput > 0 ? 1 : (int) Math.max(1,
            Math.min(SAMPLE_EVERY, o.numRecords / SAMPLES_MIN));
        Properties p = new Properties();
        p.put("client.id", "perf-producer-client");
        p.putAll(o.properties);
        p.put("bootstrap.servers", o.bootstrap);
        producer = new KafkaProducer<>(p, new ByteArraySerializer(),
            new ByteArraySerializer());
        producer.partitionsFor(o.topic);
    }

    String version() {
        return producer.metrics().values().stream()
            .filter(m -> m.metricName().group().equals("app-info")
                && m.metricName().name().equals("version"))
            .map(m -> String.valueOf(m.metricValue())).findFirst().orElse("?");
    }

    void count(Throwable e) {
        if (e != null) {
            failed.incrementAndGet();
            failure = e;
        } else {
            // one thread makes callbacks of success: no locked instruction
            acked.lazySet(acked.getPlain() + 1);
        }
    }

    /* By the sending thread that waited. */
    void countFuture(Throwable e) {
        if (e == null) {
            ackedFutures.incrementAndGet();
        } else {
            failed.incrementAndGet();
            failure = e;
        }
    }

    void refuse(Throwable e) {
        refusal = e;
    }

    /** Send so many records from all threads, and wait for their reports. */
    void phase(long records, Latency into) throws InterruptedException {
        latency = into;
        Worker[] workers = new Worker[options.threads];
        for (int i = 0; i < workers.length; i++) {
            long part = records / workers.length
                + (i < records % workers.length ? 1 : 0);
            workers[i] = new Worker(this, i, part);
            workers[i].start();
        }
        for (Worker w : workers) {
            w.join();
        }
        producer.flush();
    }

    long acked() {
        return acked.get() + ackedFutures.get();
    }

    long failed() {
        return failed.get();
    }

    void complain(long missing) {
        if (failure != null) {
            System.err.println(Options.TOOL + ": " + failed()
                + " records failed: " + failure);
        }
        if (refusal != null) {
            System.err.println(Options.TOOL + ": not taken: " + refusal);
        }
        if (missing > 0) {
            System.err.println(Options.TOOL + ": void: " + missing
                + " records have no report");
        }
    }
}
