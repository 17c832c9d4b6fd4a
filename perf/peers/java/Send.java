/* SPDX-License-Identifier: BSD-2-Clause */
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What multi_thread_send does, through the Java client: the same options,
 * payloads and figures.  Give it a long --warmup-records: it compiles itself
 * meanwhile.
 */
public final class Send {
    private Send() { }

    private static Map<String, Object> settings(Run run) {
        Options o = run.options;
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("topic", o.topic);
        m.put("num_records", o.numRecords);
        m.put("warmup_records", o.warmupRecords);
        m.put("record_size", run.payload.meanSize());
        m.put("throughput", o.throughput);
        m.put("paced", o.paced);
        m.put("key_distribution", o.keyRange == 0 ? "none"
            : o.keysRandom ? "random" : "range");
        m.put("record_key_range", o.keyRange);
        m.put("key_size", o.keySize);
        m.put("threads", o.threads);
        m.put("reports", o.futures ? "future" : "callback");
        m.put("outstanding", o.outstanding);
        m.put("latency_sampled_every", run.sampleEvery);
        return m;
    }

    private static void costs(Map<String, Object> m, Run run, Usage a,
            Usage b, long measured) {
        double n = measured;
        double s = (b.atNs - a.atNs) / 1e9;
        double user = b.userTicks - a.userTicks;
        double system = b.systemTicks - a.systemTicks;
        double requests = b.requests - a.requests;
        m.put("elapsed_s", s);
        m.put("records_per_s", n / s);
        m.put("mb_per_s", n * run.payload.meanSize() / (1 << 20) / s);
        m.put("cpu_ns_per_record", (b.cpuNs - a.cpuNs) / n);
        m.put("cpu_user_share", user / (user + system));
        m.put("voluntary_switches", b.voluntary - a.voluntary);
        m.put("involuntary_switches", b.involuntary - a.involuntary);
        m.put("rss_mb", b.peakRssMb);
        m.put("requests", requests);
        m.put("records_per_request", requests > 0 ? n / requests : -1);
    }

    private static void latencies(Map<String, Object> m, Latency l) {
        m.put("latency_samples", l.count());
        m.put("mean_us", l.meanUs());
        m.put("p50_us", l.us(0.5));
        m.put("p95_us", l.us(0.95));
        m.put("p99_us", l.us(0.99));
        m.put("p999_us", l.us(0.999));
        m.put("max_us", l.maxUs());
    }

    /* Not finite or negative: not known. */
    private static String json(Object v, String indent) {
        if (v instanceof Map) {
            StringBuilder b = new StringBuilder("{");
            for (Map.Entry<?, ?> e : ((Map<?, ?>) v).entrySet()) {
                b.append(b.length() > 1 ? ",\n" : "\n").append(indent)
                    .append("  \"").append(e.getKey()).append("\": ")
                    .append(json(e.getValue(), indent + "  "));
            }
            return b + "\n" + indent + "}";
        }
        if (v instanceof Double) {
            double d = (Double) v;
            return d >= 0 && Double.isFinite(d)
                ? String.format(java.util.Locale.ROOT, "%.3f", d) : "null";
        }
        return v instanceof String ? "\"" + v + "\"" : String.valueOf(v);
    }

    private static void write(Options o, Map<String, Object> m)
            throws IOException {
        if (o.json != null && o.json.equals("-")) {
            System.out.println(json(m, ""));
        } else if (o.json != null) {
            Files.writeString(Path.of(o.json), json(m, "") + "\n");
        }
    }

    /* 0 only if every record was acknowledged. */
    private static int measure(Options o) throws Exception {
        Run run = new Run(o);
        Latency measured = new Latency();
        if (o.warmupRecords > 0) {
            run.phase(o.warmupRecords, new Latency());
        }
        long warmAcked = run.acked();
        Usage begin = new Usage(run.producer);
        run.phase(o.numRecords - o.warmupRecords, measured);
        Usage end = new Usage(run.producer);
        long acked = run.acked();
        long missing = o.numRecords - acked - run.failed();
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("tool", Options.TOOL);
        m.put("version", run.version());
        m.put("acked", acked);
        m.put("failed", run.failed());
        m.put("refused", 0);
        m.put("missing", missing);
        m.put("measured", acked - warmAcked);
        m.put("interrupted", false);
        costs(m, run, begin, end, acked - warmAcked);
        latencies(m, measured);
        m.put("settings", settings(run));
        PrintStream out = "-".equals(o.json) ? System.err : System.out;
        out.printf("java %s: %d records acknowledged, %.0f records/sec, "
            + "CPU %.1f ns per record.%n", run.version(), acked,
            m.get("records_per_s"), m.get("cpu_ns_per_record"));
        run.complain(missing);
        write(o, m);
        run.producer.close();
        return acked == o.numRecords ? 0 : 1;
    }

    public static void main(String[] args) throws Exception {
        try {
            System.exit(measure(Options.parse(args)));
        } catch (Options.Wrong | NumberFormatException e) {
            System.err.println(e.getMessage());
            System.exit(2);
        }
    }
}
