package cloister;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** Messages from and to the agent: 4 bytes of length, little endian, then JSON. One thread reads, any may send. */
final class Channel {
    // limits::kDisplayMax of the agent, less the words around the data. A larger one is replaced by a note.
    private static final int MESSAGE_MAX = 8 * 1024 * 1024 - 4096;

    private final FileInputStream in;
    private final OutputStream out;
    private final BlockingQueue<Map<String, Object>> requests = new LinkedBlockingQueue<>();
    private final Object syncLock = new Object();
    private int awaited; // sync replies that have not come yet

    Channel(int fd) throws ReflectiveOperationException {
        var descriptor = Files.descriptor(fd);
        in = new FileInputStream(descriptor);
        out = new FileOutputStream(descriptor);
    }

    void listen() {
        Thread reader = new Thread(this::readAll, "cloister agent");
        reader.setDaemon(true);
        reader.start();
    }

    /** The content of the next execute_request. */
    Map<String, Object> receive() throws InterruptedException {
        return requests.take();
    }

    void send(String type, Map<String, ?> content) {
        byte[] body = encode(type, content);
        if (body.length > MESSAGE_MAX) body = encode(type, tooLarge(content, body.length));
        byte[] length = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(body.length).array();
        byte[] whole = new byte[length.length + body.length];
        System.arraycopy(length, 0, whole, 0, length.length);
        System.arraycopy(body, 0, whole, length.length, body.length);
        try {
            synchronized (out) {
                out.write(whole);
            }
        } catch (IOException error) {
            Runtime.getRuntime().halt(1); // the agent is gone
        }
    }

    /** Returns when the agent has read everything that was written before. */
    void sync() {
        boolean interrupted = false;
        synchronized (syncLock) {
            awaited++;
            send("stream_sync", Map.of());
            while (awaited > 0) {
                try {
                    syncLock.wait();
                } catch (InterruptedException error) {
                    interrupted = true; // it is for the code; the reply comes in any case
                }
            }
        }
        if (interrupted) Thread.currentThread().interrupt();
    }

    private void readAll() {
        try (DataInputStream data = new DataInputStream(in)) {
            while (true) take(read(data));
        } catch (EOFException error) {
            Runtime.getRuntime().halt(0); // the agent is gone, or wants no more
        } catch (IOException | InterruptedException error) {
            Runtime.getRuntime().halt(1);
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> read(DataInputStream data) throws IOException {
        byte[] body = new byte[Integer.reverseBytes(data.readInt())];
        data.readFully(body);
        return (Map<String, Object>) Json.parse(new String(body, StandardCharsets.UTF_8));
    }

    @SuppressWarnings("unchecked")
    private void take(Map<String, Object> message) throws InterruptedException {
        if ("execute_request".equals(message.get("msg_type"))) {
            requests.put((Map<String, Object>) message.get("content"));
        } else if ("stream_sync_reply".equals(message.get("msg_type"))) {
            synchronized (syncLock) {
                awaited--;
                syncLock.notifyAll();
            }
        }
    }

    private static byte[] encode(String type, Map<String, ?> content) {
        Map<String, Object> message = new LinkedHashMap<>();
        message.put("msg_type", type);
        message.put("content", content);
        return Json.write(message).getBytes(StandardCharsets.UTF_8);
    }

    private static Map<String, Object> tooLarge(Map<String, ?> content, int size) {
        String note = String.format(
                "[a display of %,d bytes is left out: at most %,d are shown. Save it to a file instead, or show less of it.]",
                size, MESSAGE_MAX);
        Map<String, Object> replaced = new LinkedHashMap<>(content);
        replaced.put("data", Map.of("text/plain", note));
        replaced.put("metadata", Map.of());
        return replaced;
    }
}
