package cloister;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;

/** What code calls to show something; each run has these names without an import. */
public final class Display {
    private static Streams streams;

    private Display() {}

    static void install(Streams all) {
        streams = all;
    }

    /** Any value; a java.awt.image.BufferedImage as its picture. */
    public static void display(Object value) throws IOException {
        if (isImage(value)) png(encoded(value));
        else display("text/plain", String.valueOf(value));
    }

    /** `data` of any MIME type; bytes as base64. */
    public static void display(String mime, String data) {
        show(Map.of(mime, data));
    }

    public static void html(String text) {
        Map<String, Object> data = new LinkedHashMap<>();
        data.put("text/html", text);
        data.put("text/plain", "<HTML>");
        show(data);
    }

    public static void markdown(String text) {
        show(Map.of("text/markdown", text));
    }

    public static void svg(String text) {
        show(Map.of("image/svg+xml", text));
    }

    public static void json(Object mapsAndLists) {
        show(Map.of("application/json", mapsAndLists));
    }

    public static void png(byte[] image) {
        show(Map.of("image/png", Base64.getEncoder().encodeToString(image)));
    }

    private static void show(Map<String, ?> data) {
        streams.tell("display_data", Map.of("data", data, "metadata", Map.of(), "transient", Map.of()));
    }

    /** By name, so that nothing of java.desktop is loaded for code without pictures. */
    private static boolean isImage(Object value) {
        return value != null && value.getClass().getName().equals("java.awt.image.BufferedImage");
    }

    private static byte[] encoded(Object image) throws IOException {
        var out = new ByteArrayOutputStream();
        javax.imageio.ImageIO.write((java.awt.image.RenderedImage) image, "png", out);
        return out.toByteArray();
    }
}
