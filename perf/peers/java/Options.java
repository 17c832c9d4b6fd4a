/* SPDX-License-Identifier: BSD-2-Clause */
import java.util.LinkedHashMap;
import java.util.Map;

/** The command line of multi_thread_send, as far as it makes sense here. */
final class Options {
    static final String TOOL = "java_send";

    String bootstrap;
    String topic;
    long numRecords;
    long warmupRecords;
    int recordSize;
    String payloadFile;
    double throughput = -1;
    boolean paced;
    boolean keysRandom;
    int keyRange;
    int keySize;
    long seed;
    int threads = 1;
    boolean futures;
    int outstanding;
    String json;
    final Map<String, String> properties = new LinkedHashMap<>();

    static final class Wrong extends RuntimeException {
        private static final long serialVersionUID = 1;

        Wrong(String text) {
            super(TOOL + ": " + text);
        }
    }

    private String[] words;
    private int at;

    static Options parse(String[] args) {
        Options o = new Options();
        o.words = args;
        while (o.at < args.length) {
            o.take(args[o.at++]);
        }
        o.check();
        return o;
    }

    private String value(String name) {
        if (at == words.length) {
            throw new Wrong(name + ": a value is missing");
        }
        return words[at++];
    }

    private long number(String name) {
        return Long.parseLong(value(name));
    }

    private void take(String name) {
        switch (name) {
            case "--bootstrap-server": bootstrap = value(name); break;
            case "--topic": topic = value(name); break;
            case "--num-records": numRecords = number(name); break;
            case "--warmup-records": warmupRecords = number(name); break;
            case "--record-size": recordSize = (int) number(name); break;
            case "--payload-file": payloadFile = value(name); break;
            case "--throughput":
                throughput = Double.parseDouble(value(name));
                break;
            case "--paced": paced = true; break;
            case "--key-distribution": keys(value(name)); break;
            case "--record-key-range": keyRange = (int) number(name); break;
            case "--key-size": keySize = (int) number(name); break;
            case "--random-seed": seed = number(name); break;
            case "--threads": threads = (int) number(name); break;
            case "--reports": reports(value(name)); break;
            case "--outstanding": outstanding = (int) number(name); break;
            case "--reporting-interval": number(name); break;
            case "--json": json = value(name); break;
            case "--command-property": properties(name); break;
            default: throw new Wrong(name + ": no such option");
        }
    }

    private void properties(String name) {
        do {
            String[] pair = value(name).split("=", 2);
            if (pair.length != 2) {
                throw new Wrong(name + ": write it as name=value");
            }
            properties.put(pair[0], pair[1]);
        } while (at < words.length && !words[at].startsWith("--"));
    }

    private void keys(String how) {
        keysRandom = how.equals("random");
        if (!keysRandom && !how.equals("none") && !how.equals("range")) {
            throw new Wrong("--key-distribution " + how);
        }
    }

    private void reports(String how) {
        futures = how.equals("future");
        if (!futures && !how.equals("callback")) {
            throw new Wrong("--reports " + how + ": give callback or future");
        }
    }

    private void check() {
        if (bootstrap == null || topic == null || numRecords == 0
                || (payloadFile == null) == (recordSize == 0)) {
            throw new Wrong("give --bootstrap-server, --topic, --num-records "
                + "and --payload-file or --record-size");
        }
        if (warmupRecords >= numRecords || (paced && throughput <= 0)) {
            throw new Wrong("--warmup-records or --paced do not fit the rest");
        }
        if (futures && outstanding == 0) {
            throw new Wrong("--reports future needs --outstanding");
        }
    }
}
