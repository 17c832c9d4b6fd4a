/* SPDX-License-Identifier: BSD-2-Clause */
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;

/**
 * What the process has used so far: CPU time of all its threads, those of the
 * collector and the compiler among them.
 */
final class Usage {
    /* Of threads that have ended. */
    private static final AtomicLong ENDED_VOLUNTARY = new AtomicLong();
    private static final AtomicLong ENDED_INVOLUNTARY = new AtomicLong();

    final long atNs;
    final long cpuNs;
    final long userTicks;
    final long systemTicks;
    final long voluntary;
    final long involuntary;
    final double peakRssMb;
    final double requests;

    Usage(KafkaProducer<?, ?> producer) throws IOException {
        long[] switches = switches();
        String[] stat = fields("/proc/self/stat");
        atNs = System.nanoTime();
        cpuNs = ((com.sun.management.OperatingSystemMXBean)
            ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
        userTicks = Long.parseLong(stat[11]);
        systemTicks = Long.parseLong(stat[12]);
        voluntary = switches[0] + ENDED_VOLUNTARY.get();
        involuntary = switches[1] + ENDED_INVOLUNTARY.get();
        peakRssMb = status("/proc/self/status", "VmHWM:") / 1024.0;
        requests = producer.metrics().values().stream()
            .filter(m -> m.metricName().name().equals("request-total")
                && m.metricName().group().equals("producer-metrics"))
            .mapToDouble(m -> (Double) m.metricValue()).sum();
    }

    /* The fields after the name, which may hold blanks. */
    private static String[] fields(String path) throws IOException {
        String text = Files.readString(Path.of(path));
        return text.substring(text.lastIndexOf(')') + 2).trim().split(" ");
    }

    private static long status(String path, String name) throws IOException {
        for (String line : Files.readAllLines(Path.of(path))) {
            if (line.startsWith(name)) {
                return Long.parseLong(line.substring(name.length()).trim()
                    .split(" ")[0]);
            }
        }
        return 0;
    }

    private static long[] switches() {
        long[] sum = new long[2];
        for (File task : new File("/proc/self/task").listFiles()) {
            try {
                String path = task + "/status";
                sum[0] += status(path, "voluntary_ctxt_switches:");
                sum[1] += status(path, "nonvoluntary_ctxt_switches:");
            } catch (IOException e) {
                continue; // it has just ended
            }
        }
        return sum;
    }

    /** A thread of ours ends: what it did must not be lost. */
    static void threadEnds() {
        try {
            String path = "/proc/thread-self/status";
            ENDED_VOLUNTARY.addAndGet(
                status(path, "voluntary_ctxt_switches:"));
            ENDED_INVOLUNTARY.addAndGet(
                status(path, "nonvoluntary_ctxt_switches:"));
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    /** Let the calling thread's sleeps end on time, not up to 50 us late. */
    static void sleepPrecisely() {
        try {
            Path self = Files.readSymbolicLink(Path.of("/proc/thread-self"));
            Files.writeString(
                Path.of("/proc/" + self.getFileName() + "/timerslack_ns"), "1");
        } catch (IOException e) {
            System.err.println(Options.TOOL + ": sleeps are not precise: " + e);
        }
    }
}
