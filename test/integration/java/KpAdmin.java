/* SPDX-License-Identifier: BSD-2-Clause */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ElectionNotNeededException;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;

/**
 * A long-lived admin client: one command a line on standard input, so that a
 * test pays for one JVM only.  A line is "ID COMMAND ARGUMENT...".  Every line
 * of an answer starts with the same ID; the last one is "ID ok" or "ID err ...".
 * A reader that finds another ID reads the rest of an answer that nobody took.
 */
public class KpAdmin {
    private final Admin admin;

    private KpAdmin(Admin admin) {
        this.admin = admin;
    }

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("request.timeout.ms", "3000");
        p.put("default.api.timeout.ms", "20000");
        p.put("reconnect.backoff.max.ms", "300");
        try (Admin admin = Admin.create(p)) {
            KpAdmin self = new KpAdmin(admin);
            BufferedReader in = new BufferedReader(
                new InputStreamReader(System.in));
            for (String line; (line = in.readLine()) != null;) {
                String[] words = line.trim().split("\\s+");
                if (words.length >= 2) {
                    self.answer(words[0],
                        Arrays.copyOfRange(words, 1, words.length));
                }
            }
        }
    }

    private void answer(String id, String[] a) {
        StringBuilder out = new StringBuilder();
        try {
            for (String line : run(a)) {
                out.append(id).append(' ').append(line).append('\n');
            }
            out.append(id).append(" ok\n");
        } catch (Throwable t) {
            Throwable c = t.getCause() != null ? t.getCause() : t;
            out.append(id).append(" err ").append(c.getClass().getSimpleName())
                .append(' ')
                .append(String.valueOf(c.getMessage()).replace('\n', ' '))
                .append('\n');
        }
        System.out.print(out);
        System.out.flush();
    }

    private List<String> run(String[] a) throws Exception {
        switch (a[0]) {
            case "create": return create(a);
            case "delete":
                admin.deleteTopics(List.of(a[1])).all().get();
                return List.of();
            case "partitions":
                admin.createPartitions(Map.of(a[1],
                    NewPartitions.increaseTo(Integer.parseInt(a[2]))))
                    .all().get();
                return List.of();
            case "describe": return describe(a[1]);
            case "config": return config(a);
            case "quota": return quota(a);
            case "offsets": return offsets(a[1]);
            case "leader": return leader(a[1], a[2], Integer.parseInt(a[3]));
            case "truncate":
                admin.deleteRecords(Map.of(partition(a[1], a[2]),
                    RecordsToDelete.beforeOffset(Long.parseLong(a[3]))))
                    .all().get();
                return List.of();
            case "brokers": return List.of(admin.describeCluster().nodes()
                .get().stream().map(n -> String.valueOf(n.id())).sorted()
                .collect(Collectors.joining(",")));
            default: throw new IllegalArgumentException("command " + a[0]);
        }
    }

    private static TopicPartition partition(String topic, String p) {
        return new TopicPartition(topic, Integer.parseInt(p));
    }

    private static Map<String, String> pairs(String[] a, int from) {
        Map<String, String> m = new HashMap<>();
        for (int i = from; i < a.length; i++) {
            int e = a[i].indexOf('=');
            m.put(a[i].substring(0, e), a[i].substring(e + 1));
        }
        return m;
    }

    private static List<Integer> numbers(String list, String separator) {
        return Arrays.stream(list.split(separator)).map(Integer::valueOf)
            .collect(Collectors.toList());
    }

    /* create TOPIC COUNT REPLICAS [k=v...], or
     * create TOPIC 1:2:3,2:3:1 - [k=v...]: replica lists, preferred first */
    private List<String> create(String[] a) throws Exception {
        NewTopic t;
        if (a[2].contains(":")) {
            Map<Integer, List<Integer>> m = new HashMap<>();
            for (String s : a[2].split(",")) {
                m.put(m.size(), numbers(s, ":"));
            }
            t = new NewTopic(a[1], m);
        } else {
            t = new NewTopic(a[1], Integer.parseInt(a[2]),
                Short.parseShort(a[3]));
        }
        admin.createTopics(List.of(t.configs(pairs(a, 4)))).all().get();
        return List.of();
    }

    private TopicDescription topic(String name) throws Exception {
        return admin.describeTopics(List.of(name)).allTopicNames().get()
            .get(name);
    }

    private static String ids(Collection<Node> nodes) {
        return nodes.stream().map(n -> String.valueOf(n.id()))
            .collect(Collectors.joining(","));
    }

    /* one line a partition: number, leader (-1: none), in-sync replicas */
    private List<String> describe(String name) throws Exception {
        List<String> out = new ArrayList<>();
        for (TopicPartitionInfo i : topic(name).partitions()) {
            out.add(i.partition() + " "
                + (i.leader() == null ? -1 : i.leader().id()) + " "
                + ids(i.isr()));
        }
        return out;
    }

    /* config topic|broker NAME k=v...: "k=" puts the default back */
    private List<String> config(String[] a) throws Exception {
        List<AlterConfigOp> ops = new ArrayList<>();
        pairs(a, 3).forEach((k, v) -> ops.add(new AlterConfigOp(
            new ConfigEntry(k, v), v.isEmpty() ? AlterConfigOp.OpType.DELETE
                : AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(
            ConfigResource.Type.valueOf(a[1].toUpperCase()), a[2]), ops))
            .all().get();
        return List.of();
    }

    /* quota CLIENT_ID k=v...: "k=" removes it */
    private List<String> quota(String[] a) throws Exception {
        List<ClientQuotaAlteration.Op> ops = new ArrayList<>();
        pairs(a, 2).forEach((k, v) -> ops.add(new ClientQuotaAlteration.Op(k,
            v.isEmpty() ? null : Double.valueOf(v))));
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
            new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, a[1])),
            ops))).all().get();
        return List.of();
    }

    /* one line a partition: number, end offset */
    private List<String> offsets(String name) throws Exception {
        Map<TopicPartition, OffsetSpec> query = new HashMap<>();
        for (TopicPartitionInfo i : topic(name).partitions()) {
            query.put(new TopicPartition(name, i.partition()),
                OffsetSpec.latest());
        }
        List<String> out = new ArrayList<>();
        admin.listOffsets(query).all().get().forEach((tp, info) ->
            out.add(tp.partition() + " " + info.offset()));
        return out;
    }

    /* leader TOPIC PARTITION BROKER: first in the replica list, and elected */
    private List<String> leader(String name, String number, int broker)
            throws Exception {
        TopicPartition tp = partition(name, number);
        List<Integer> replicas = topic(name).partitions().get(tp.partition())
            .replicas().stream().map(Node::id).collect(Collectors.toList());
        replicas.remove((Integer) broker);
        replicas.add(0, broker);
        admin.alterPartitionReassignments(Map.of(tp,
            Optional.of(new NewPartitionReassignment(replicas)))).all().get();
        try {
            admin.electLeaders(ElectionType.PREFERRED, Set.of(tp)).all().get();
        } catch (Exception e) {
            if (!(e.getCause() instanceof ElectionNotNeededException)) {
                throw e;
            }
        }
        return List.of();
    }
}
