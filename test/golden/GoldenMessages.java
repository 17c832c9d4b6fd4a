/* SPDX-License-Identifier: BSD-2-Clause */

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.LongNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.ShortNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;

/**
 * Prints requests and responses of the APIs that a producer speaks, in every
 * version, as Kafka's own generated classes write them, with the values that
 * those classes read back.  One file an API; the format is in README.md.
 *
 * Values come from walking Kafka's schemas, so nothing here knows a message.
 */
public final class GoldenMessages {
    /** How a message is filled. */
    enum Fill { DEFAULT, MIN, MAX, NULL, MIXED, TAGS, MANY, LONG }

    private static final int MANY = 130; /* a count of two varint bytes */
    private final PrintStream out;
    private final Fill fill;
    private final Random random;
    private final byte[] batch;

    private GoldenMessages(PrintStream out, Fill fill, long seed) {
        this.out = out;
        this.fill = fill;
        this.random = new Random(seed);
        this.batch = someBatch();
    }

    public static void main(String[] args) throws Exception {
        Path dir = Path.of(args[0]);
        print(dir, "produce.txt", ApiMessageType.PRODUCE, 3, 13);
        print(dir, "metadata.txt", ApiMessageType.METADATA, 0, 13);
        print(dir, "api_versions.txt", ApiMessageType.API_VERSIONS, 0, 5);
        print(dir, "init_producer_id.txt", ApiMessageType.INIT_PRODUCER_ID,
              0, 6);
    }

    private static void print(Path dir, String file, ApiMessageType api,
                              int low, int high) throws Exception {
        if (api.highestSupportedVersion(true) != high)
            throw new IllegalStateException(api + " is not " + high);
        try (PrintStream out = new PrintStream(dir.resolve(file).toFile(),
                                               StandardCharsets.US_ASCII)) {
            out.println("# Printed by GoldenMessages from Kafka's classes.");
            for (int v = low; v <= high; v++)
                for (Fill fill : Fill.values())
                    for (boolean request : new boolean[] { true, false })
                        if (wanted(api, fill, v, high))
                            new GoldenMessages(out, fill, 31L * v + 7)
                                .message(api, request, (short) v);
        }
    }

    private static boolean wanted(ApiMessageType api, Fill fill, int version,
                                  int high) {
        switch (fill) {
        case TAGS:
            return api.requestHeaderVersion((short) version) == 2;
        case MANY:
            return version == high;
        case LONG:
            return api == ApiMessageType.INIT_PRODUCER_ID
                && (version == 0 || version == high);
        default:
            return true;
        }
    }

    private void message(ApiMessageType api, boolean request, short version)
            throws Exception {
        Schema schema = (request ? api.requestSchemas()
                                 : api.responseSchemas())[version];
        Message data = request ? api.newRequest() : api.newResponse();
        if (fill != Fill.DEFAULT)
            data = fromJson(data.getClass(), struct(schema), version);
        if (fill == Fill.TAGS)
            addTags(data, schema);
        ByteBuffer body = MessageUtil.toByteBufferAccessor(data, version)
            .buffer();
        out.printf("message %s %s %d %s%n", api.name(),
                   request ? "request" : "response", version,
                   fill.name().toLowerCase());
        header(api, request, version);
        out.println("body " + Hex.word(body));
        Message read = data.getClass()
            .getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(body.duplicate()), version);
        dumpStruct("", read, schema);
        if (fill == Fill.DEFAULT)
            nullables("", schema);
        out.println("end");
    }

    /** Names the fields that may be null in this version. */
    private void nullables(String path, Schema schema) {
        for (Field f : fields(schema)) {
            Type type = f.type;
            String name = path.isEmpty() ? f.name : path + "." + f.name;
            if (type.isNullable())
                out.println("nullable " + name);
            if (type.isArray())
                type = item(type);
            if (type instanceof Schema)
                nullables(name, (Schema) type);
        }
    }

    /* -- headers -- */

    private void header(ApiMessageType api, boolean request, short version)
            throws Exception {
        int correlation = fill == Fill.MIN ? Integer.MIN_VALUE
            : fill == Fill.MAX ? Integer.MAX_VALUE : random.nextInt();
        String client = fill == Fill.DEFAULT || fill == Fill.NULL ? null
            : fill == Fill.MIN ? "" : text();
        Message h;
        short headerVersion;
        if (request) {
            h = new RequestHeaderData().setRequestApiKey(api.apiKey())
                .setRequestApiVersion(version).setCorrelationId(correlation)
                .setClientId(client);
            headerVersion = api.requestHeaderVersion(version);
        } else {
            h = new ResponseHeaderData().setCorrelationId(correlation);
            headerVersion = api.responseHeaderVersion(version);
        }
        if (fill == Fill.TAGS && headerVersion == (request ? 2 : 1))
            h.unknownTaggedFields().add(unknownTag());
        out.println("header " + Hex.word(
            MessageUtil.toByteBufferAccessor(h, headerVersion).buffer()));
        out.println("correlation " + correlation);
        if (request)
            out.println("client " + Hex.word(client));
    }

    /* -- values, as the JSON that Kafka's converters read -- */

    private static Message fromJson(Class<?> type, JsonNode json, short version)
            throws Exception {
        return (Message) Class.forName(type.getName() + "JsonConverter")
            .getMethod("read", JsonNode.class, short.class)
            .invoke(null, json, version);
    }

    private ObjectNode struct(Schema schema) {
        ObjectNode o = JsonNodeFactory.instance.objectNode();
        for (BoundField f : schema.fields()) {
            if (!(f.def.type instanceof TaggedFields)) {
                o.set(camel(f.def.name), value(f.def.type));
                continue;
            }
            for (Field tag : ((TaggedFields) f.def.type).fields().values())
                if (fill != Fill.MIXED || random.nextBoolean())
                    o.set(camel(tag.name), value(tag.type));
        }
        return o;
    }

    private JsonNode value(Type type) {
        if (type.isNullable() && (fill == Fill.NULL
                                  || fill == Fill.MIXED && oneIn(4)))
            return NullNode.instance;
        if (type instanceof Schema)
            return struct((Schema) type);
        if (type.arrayElementType().isPresent())
            return array(type.arrayElementType().get());
        switch (type.toString().replace("COMPACT_", "")
                    .replace("NULLABLE_", "")) {
        case "BOOLEAN":
            return BooleanNode.valueOf(fill == Fill.MAX || random.nextBoolean()
                                       && fill != Fill.MIN);
        case "INT8":
            return IntNode.valueOf((byte) number(Byte.MIN_VALUE,
                                                 Byte.MAX_VALUE));
        case "INT16":
            return ShortNode.valueOf((short) number(Short.MIN_VALUE,
                                                    Short.MAX_VALUE));
        case "INT32":
            return IntNode.valueOf((int) number(Integer.MIN_VALUE,
                                                Integer.MAX_VALUE));
        case "INT64":
            return LongNode.valueOf(number(Long.MIN_VALUE, Long.MAX_VALUE));
        case "UUID":
            return TextNode.valueOf(uuid().toString());
        case "STRING":
            return TextNode.valueOf(text());
        case "RECORDS":
            return TextNode.valueOf(Base64.getEncoder().encodeToString(
                fill == Fill.MIN ? new byte[0] : batch));
        default:
            throw new IllegalStateException(type.toString());
        }
    }

    private ArrayNode array(Type item) {
        ArrayNode a = JsonNodeFactory.instance.arrayNode();
        int count = fill == Fill.MIN ? 0 : fill == Fill.MAX ? 3
            : fill == Fill.NULL ? 1 : fill == Fill.MANY ? many(item)
            : fill == Fill.TAGS ? 1 + random.nextInt(2) : random.nextInt(4);
        while (count-- > 0)
            a.add(value(item));
        return a;
    }

    /* Arrays of arrays would make a file of megabytes. */
    private static int many(Type item) {
        return item instanceof Schema && hasArrays((Schema) item) ? 2 : MANY;
    }

    private static boolean hasArrays(Schema schema) {
        for (BoundField f : schema.fields())
            if (f.def.type.isArray())
                return true;
        return false;
    }

    private boolean oneIn(int n) {
        return random.nextInt(n) == 0;
    }

    private long number(long min, long max) {
        switch (fill) {
        case MIN:
            return min;
        case MAX:
            return max;
        case NULL:
            return -1;
        default:
            return random.nextLong() >> random.nextInt(63);
        }
    }

    private Uuid uuid() {
        if (fill == Fill.MIN)
            return Uuid.ZERO_UUID;
        if (fill == Fill.MAX)
            return new Uuid(-1, -1);
        return new Uuid(random.nextLong(), random.nextLong());
    }

    private String text() {
        switch (fill) {
        case MIN:
            return "";
        case MAX:
            return "\u0000\u007f\u00e9\u20ac\ud83d\ude00" + "x".repeat(300);
        case LONG:
            return "y".repeat(Short.MAX_VALUE);
        default:
            StringBuilder s = new StringBuilder();
            for (int n = random.nextInt(20); n > 0; n--)
                s.append((char) ('!' + random.nextInt(94)));
            return s.toString();
        }
    }

    private static byte[] someBatch() {
        try (MemoryRecordsBuilder b = MemoryRecords.builder(
                 ByteBuffer.allocate(512), (byte) 2, Compression.NONE,
                 TimestampType.CREATE_TIME, 0L, 0L, 4711L, (short) 3, 5)) {
            b.append(1700000000000L, "key".getBytes(), "value".getBytes());
            b.append(1700000000001L, (byte[]) null, new byte[200]);
            ByteBuffer built = b.build().buffer();
            byte[] bytes = new byte[built.remaining()];
            built.get(bytes);
            return bytes;
        }
    }

    /* -- unknown tagged fields, in every struct -- */

    private RawTaggedField unknownTag() {
        byte[] data = new byte[random.nextInt(3) * 70];
        random.nextBytes(data);
        return new RawTaggedField(100 + random.nextInt(100000), data);
    }

    private void addTags(Message data, Schema schema) throws Exception {
        data.unknownTaggedFields().add(unknownTag());
        data.unknownTaggedFields().add(
            new RawTaggedField(Integer.MAX_VALUE - 1, new byte[] { 1 }));
        for (Field f : fields(schema)) {
            Object value = get(data, f);
            if (value instanceof Message)
                addTags((Message) value, (Schema) f.type);
            if (value instanceof Collection && item(f.type) instanceof Schema)
                for (Object o : (Collection<?>) value)
                    addTags((Message) o, (Schema) item(f.type));
        }
    }

    /* -- printing what was read back -- */

    private static Type item(Type type) {
        return type.arrayElementType().get();
    }

    private static List<Field> fields(Schema schema) {
        List<Field> all = new ArrayList<>();
        for (BoundField f : schema.fields())
            if (f.def.type instanceof TaggedFields)
                all.addAll(new TreeMap<>(((TaggedFields) f.def.type).fields())
                               .values());
            else
                all.add(f.def);
        return all;
    }

    private static Object get(Object data, Field f) throws Exception {
        return data.getClass().getMethod(camel(f.name)).invoke(data);
    }

    private void dumpStruct(String path, Object data, Schema schema)
            throws Exception {
        for (Field f : fields(schema))
            dump(path.isEmpty() ? f.name : path + "." + f.name, f.type,
                 get(data, f));
    }

    private void dump(String path, Type type, Object value) throws Exception {
        if (value instanceof Collection) {
            int i = 0;
            out.println("= " + path + " " + ((Collection<?>) value).size());
            for (Object o : (Collection<?>) value)
                dump(path + "[" + i++ + "]", item(type), o);
        } else if (type instanceof Schema) {
            dumpStruct(path, value, (Schema) type);
        } else {
            out.println("= " + path + " " + scalar(value));
        }
    }

    private static String scalar(Object value) throws IOException {
        if (value instanceof MemoryRecords) {
            ByteBuffer b = ((MemoryRecords) value).buffer();
            byte[] bytes = new byte[b.remaining()];
            b.duplicate().get(bytes);
            return Hex.word(bytes);
        }
        if (value instanceof Uuid) {
            Uuid u = (Uuid) value;
            return String.format("%016x%016x", u.getMostSignificantBits(),
                                 u.getLeastSignificantBits());
        }
        if (value instanceof String)
            return Hex.word((String) value);
        return String.valueOf(value);
    }

    private static String camel(String name) {
        StringBuilder s = new StringBuilder();
        for (String word : name.split("_"))
            s.append(s.length() == 0 ? word
                     : Character.toUpperCase(word.charAt(0))
                       + word.substring(1));
        return s.toString();
    }
}
