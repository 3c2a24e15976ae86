package cloister;

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** System.out and System.err, in their order among the messages, and System.in of the run. */
final class Streams {
    private static final int NOTHING = -1, MESSAGE = 0;
    static final String NO_STDIN =
            "this run has no stdin, so there is nothing to read: send `stdin` with the run, or pipe text into `cloister run`";

    private final Channel channel;
    private final Object order = new Object();
    private final Input input = new Input();
    private int last = NOTHING;
    private boolean inRun;

    Streams(Channel channel) {
        this.channel = channel;
    }

    void install() {
        System.setOut(new PrintStream(new Ordered(1, FileDescriptor.out), true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(new Ordered(2, FileDescriptor.err), true, StandardCharsets.UTF_8));
        System.setIn(input);
    }

    void beginRun(String stdinPath) throws IOException {
        input.open(stdinPath);
        synchronized (order) {
            last = NOTHING;
            inRun = true;
        }
    }

    void endRun() throws IOException {
        System.out.flush();
        System.err.flush();
        input.open(null);
        synchronized (order) {
            inRun = false;
        }
    }

    /** The agent reads both pipes dry before it looks at a message. */
    void tell(String type, Map<String, ?> content) {
        synchronized (order) {
            channel.send(type, content);
            last = MESSAGE;
        }
    }

    /** Before another stream is written than last, the agent must have read that one. */
    private final class Ordered extends OutputStream {
        private final int fd;
        private final FileOutputStream out;

        Ordered(int fd, FileDescriptor descriptor) {
            this.fd = fd;
            this.out = new FileOutputStream(descriptor);
        }

        @Override
        public void write(int b) throws IOException {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws IOException {
            synchronized (order) {
                if (inRun && last != NOTHING && last != fd) channel.sync();
                last = fd;
                out.write(bytes, offset, length);
            }
        }
    }

    /** One object for all runs: code keeps readers on it from one run to the next. */
    private static final class Input extends InputStream {
        private volatile InputStream source;

        /** At once: when the run is said to be busy, the agent lets go of its own end. */
        void open(String path) throws IOException {
            if (source != null) source.close();
            source = path == null ? null : new FileInputStream(path);
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
            InputStream from = source();
            return length == 0 ? 0 : from.read(bytes, offset, length);
        }

        @Override
        public int available() throws IOException {
            return source().available();
        }

        /** Unchecked, because java.util.Scanner takes an IOException for the end of the file. */
        private InputStream source() {
            InputStream open = source;
            if (open == null) throw new UncheckedIOException(NO_STDIN, new IOException("no stdin"));
            return open;
        }
    }
}
