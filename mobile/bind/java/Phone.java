import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import mobile.Config;
import mobile.Device;
import mobile.Graph;
import mobile.Listener;
import mobile.Predictions;
import mobile.Store;

/**
 * A phone on a Java machine, for the tests of the binding. It prints a line for each thing that happens.
 *
 * <pre>
 * Phone id DIR                     make the key, print the ID
 * Phone train DIR PLAN SEED NODES  take part until the model is final, then predict; as a leaf with an INVITATION
 * Phone faults DIR PLAN            what goes wrong crosses as exceptions
 * Phone cycles DIR PLAN COUNT      start and stop
 * </pre>
 */
public class Phone {
    static final int FEATURES = 4;

    public static void main(String[] args) throws Exception {
        Path dir = Path.of(args[1]);
        Files.createDirectories(dir);
        System.out.println("resident " + resident() + " before the library");
        switch (args[0]) {
            case "id":
                System.out.println("id " + device(dir, null).id());
                break;
            case "train":
                train(dir, Path.of(args[2]), Long.parseLong(args[3]), Integer.parseInt(args[4]), args.length > 5 ? args[5] : "");
                break;
            case "faults":
                faults(dir, Path.of(args[2]));
                break;
            case "cycles":
                cycles(dir, Path.of(args[2]), Integer.parseInt(args[3]));
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
        System.out.println("end");
        System.exit(0); // the library's threads would keep the machine alive
    }

    /** Keys keeps a store's values in files. */
    static class Keys implements Store {
        final Path dir;

        Keys(Path dir) {
            this.dir = dir;
        }

        public byte[] get(String key) throws Exception {
            Path at = dir.resolve(key);
            return Files.exists(at) ? Files.readAllBytes(at) : null;
        }

        public void put(String key, byte[] value) throws Exception {
            Files.write(dir.resolve(key), value);
        }
    }

    /** Printer tells what a listener is told. */
    static class Printer implements Listener {
        final CountDownLatch over = new CountDownLatch(1);

        public synchronized void onState(String state, String detail) throws Exception {
            System.out.println("state " + state + " " + detail);
            if (state.equals("done") || state.equals("failed") || state.equals("paused")) {
                over.countDown();
            }
        }

        public void onRound(long done, long total, double loss, double metric) {
            System.out.println("round " + done + " of " + total);
        }

        public void onBytes(long sent) {
            System.out.println("bytes " + sent);
        }

        public void onError(String kind, String text) {
            System.out.println("error " + kind + " " + text);
        }
    }

    static Device device(Path dir, Path plan) throws Exception {
        return device(dir, plan, "");
    }

    static Device device(Path dir, Path plan, String invitation) throws Exception {
        Config config = new Config(dir.resolve("runs").toString());
        if (plan != null) {
            config.setPlan(Files.readAllBytes(plan));
        }
        config.setWait(60);
        config.setEvidence(invitation.getBytes(StandardCharsets.UTF_8));
        return new Device(config, new Keys(dir));
    }

    /** contacts makes two groups of people who mostly know their own. */
    static Graph contacts(long seed, int nodes) throws Exception {
        Graph g = new Graph(FEATURES, 2);
        Random random = new Random(seed);
        for (int i = 0; i < nodes; i++) {
            long node = g.addNode("person " + i + " \uD83D\uDE42"); // beyond 16 bits
            int group = i % 2;
            float noise = random.nextFloat() - 0.5f;
            ByteBuffer row = ByteBuffer.allocate(4 * FEATURES).order(ByteOrder.LITTLE_ENDIAN);
            row.putFloat(group == 0 ? 1 : 0).putFloat(group).putFloat(noise).putFloat(group + 3 * noise);
            g.setFeatures(node, row.array());
            g.setLabel(node, group);
            for (int k = 0; k < 3 && i > 0; k++) {
                int other = random.nextInt(i);
                g.addEdge(node, k == 0 || other % 2 == group ? other : (other + 1) % i);
            }
        }
        return g;
    }

    static void train(Path dir, Path plan, long seed, int nodes, String invitation) throws Exception {
        Device d = device(dir, plan, invitation);
        Graph g = contacts(seed, nodes);
        d.setGraph(g);
        d.allow(true, true, false);
        System.out.println("resident " + resident() + " with the graph");
        Printer p = new Printer();
        d.start(p);
        p.over.await();
        System.out.println("resident " + resident() + " at the end, at most " + highest());
        if (d.state().equals("done")) {
            Predictions all = d.predict(g);
            int right = 0;
            for (long i = 0; i < all.nodes(); i++) {
                if (all.classOf(i) == i % 2) {
                    right++;
                }
            }
            System.out.println("right " + right + " of " + all.nodes());
        }
        d.stop();
    }

    interface Attempt {
        void run() throws Exception;
    }

    static void expect(String words, Attempt a) {
        try {
            a.run();
        } catch (Exception e) {
            if (String.valueOf(e.getMessage()).contains(words)) {
                System.out.println("exception " + words);
                return;
            }
            throw new AssertionError("the message must say " + words, e);
        }
        throw new AssertionError("no exception where one must say " + words);
    }

    static void faults(Path dir, Path plan) throws Exception {
        expect("features must be 1 to 4096", () -> new Graph(0, 2));
        Graph g = contacts(1, 10);
        expect("a node must be 0 to 9 (got 10)", () -> g.addEdge(0, 10));
        expect("must have 16 bytes", () -> g.setFeatures(0, new byte[3]));
        expect("\uD83D\uDE42", () -> g.addNode("person 1 \uD83D\uDE42"));
        expect("no model yet", () -> device(dir, plan).predict(g));
        expect("has no graph", () -> device(dir, plan).start(null));
        Config config = new Config(dir.toString());
        expect("the keystore is locked", () -> new Device(config, new Keys(dir) {
            public byte[] get(String key) throws Exception {
                throw new IOException("the keystore is locked");
            }
        }));
        Device d = device(dir, plan);
        d.setGraph(g);
        Printer broken = new Printer() {
            public void onState(String state, String detail) throws Exception {
                throw new IllegalStateException("the activity is gone");
            }
        };
        d.start(broken);
        while (!d.state().equals("paused")) {
            Thread.sleep(5);
        }
        expect("the activity is gone", () -> d.start(null));
        d.start(null);
        expect("pause it first", () -> d.start(null));
        d.stop();
        expect("stopped", () -> d.start(null));
    }

    static void cycles(Path dir, Path plan, int count) throws Exception {
        Graph g = contacts(2, 20);
        long slowest = 0;
        int threads = 0, files = 0;
        for (int i = 0; i < count; i++) {
            Device d = device(dir, plan);
            d.setGraph(g);
            d.allow(true, true, true);
            d.start(new Printer() {
                public synchronized void onState(String state, String detail) {}
            });
            Thread.sleep(i % 8);
            long begun = System.nanoTime();
            d.stop();
            slowest = Math.max(slowest, System.nanoTime() - begun);
            if (i == count / 10) { // by now all that is made once has been
                threads = entries("task");
                files = entries("fd");
                System.out.println("resident " + resident() + " after " + i + " cycles");
            }
        }
        System.gc();
        System.out.printf("cycles %d threads %d to %d files %d to %d slowest %d ms%n", count, threads, entries("task"), files, entries("fd"), slowest / 1_000_000);
        System.out.println("resident " + resident() + " after all");
    }

    static int entries(String what) {
        return Path.of("/proc/self/" + what).toFile().list().length;
    }

    /** resident is the memory of this process in kB. */
    static long resident() throws IOException {
        return status("VmRSS:");
    }

    static long highest() throws IOException {
        return status("VmHWM:");
    }

    static long status(String name) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"), StandardCharsets.UTF_8)) {
            if (line.startsWith(name)) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        return 0;
    }
}
