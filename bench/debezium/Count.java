import io.debezium.embedded.Connect;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.RecordChangeEvent;
import io.debezium.engine.format.ChangeEventFormat;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.MemoryOffsetBackingStore;

/**
 * Counts the rows that Debezium's engine reads from a place of a MariaDB's log on: a reference of the benchmarks.
 *
 * <p>HOST PORT USER TABLE FILE POSITION GTIDS ROWS [NAME=VALUE ...]; BENCH_PASSWORD opens the server. Prints the rows, seconds
 * from the first of them to the last, and seconds from the start of this program to the last.
 */
public final class Count {
    private static final String NAME = "bench";
    private static final long WAIT_MINUTES = 15;
    private static String begin;

    /** Where the connector begins: it finds this instead of what an earlier run kept. */
    public static final class Begin extends MemoryOffsetBackingStore {
        @Override
        public void configure(WorkerConfig config) {
            super.configure(config);
            data.put(
                    bytes("[\"" + NAME + "\",{\"server\":\"" + NAME + "\"}]"),
                    bytes(begin));
        }

        @Override
        public Set<Map<String, Object>> connectorPartitions(String connector) {
            return Set.of();
        }

        private static ByteBuffer bytes(String text) {
            return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
        }
    }

    /** When the first and the last row came. */
    private static final class Counter {
        private final long wanted;
        private final CountDownLatch done = new CountDownLatch(1);
        private long rows;
        private long first;
        private long last;

        Counter(long wanted) {
            this.wanted = wanted;
        }

        void take(RecordChangeEvent<SourceRecord> event) {
            Object value = event.record().value();
            if (!(value instanceof Struct) || ((Struct) value).schema().field("after") == null) {
                return;
            }
            if (rows++ == 0) {
                first = System.nanoTime();
            }
            if (rows == wanted) {
                last = System.nanoTime();
                done.countDown();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        long began = System.nanoTime();
        begin = "{\"file\":\"" + args[4] + "\",\"pos\":" + args[5] + ",\"gtids\":\"" + args[6] + "\"}";
        Counter counter = new Counter(Long.parseLong(args[7]));
        DebeziumEngine<RecordChangeEvent<SourceRecord>> engine =
                DebeziumEngine.create(ChangeEventFormat.of(Connect.class))
                        .using(settings(args))
                        .using(
                                (DebeziumEngine.CompletionCallback)
                                        (success, message, fault) -> {
                                            if (!success) {
                                                System.err.println(message + ": " + fault);
                                            }
                                            counter.done.countDown();
                                        })
                        .notifying(counter::take)
                        .build();
        Thread runs = new Thread(engine);
        runs.start();
        boolean came = counter.done.await(WAIT_MINUTES, TimeUnit.MINUTES);
        if (!came || counter.last == 0) {
            System.err.println(counter.rows + " rows came instead of " + counter.wanted);
            System.exit(1);
        }
        double nano = 1e9;
        System.out.println(
                counter.rows + " " + (counter.last - counter.first) / nano + " " + (counter.last - began) / nano);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static Properties settings(String[] args) {
        Properties found = new Properties();
        found.setProperty("name", NAME);
        found.setProperty("topic.prefix", NAME);
        found.setProperty("connector.class", "io.debezium.connector.mariadb.MariaDbConnector");
        found.setProperty("offset.storage", Begin.class.getName());
        found.setProperty("schema.history.internal", "io.debezium.relational.history.MemorySchemaHistory");
        // The log is read from the place that it is given; definitions of tables are those of now.
        found.setProperty("snapshot.mode", "recovery");
        found.setProperty("snapshot.locking.mode", "none");
        found.setProperty("include.schema.changes", "false");
        found.setProperty("database.hostname", args[0]);
        found.setProperty("database.port", args[1]);
        found.setProperty("database.user", args[2]);
        found.setProperty("database.password", System.getenv("BENCH_PASSWORD"));
        found.setProperty("database.server.id", "4000000002");
        found.setProperty("table.include.list", args[3]);
        for (int index = 8; index < args.length; index++) {
            String[] setting = args[index].split("=", 2);
            found.setProperty(setting[0], setting[1]);
        }
        return found;
    }
}
