package cloister;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** JSON as maps, lists, texts, numbers, booleans and null. What is read comes from the agent: whole, and not deep. */
final class Json {
    private static final int DEPTH_MAX = 20; // the agent takes a few levels more

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        return new Json(text).value();
    }

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(out, value, 0);
        return out.toString();
    }

    private static void write(StringBuilder out, Object value, int depth) {
        if (depth > DEPTH_MAX) {
            quote(out, "…");
        } else if (value instanceof Map<?, ?> map) {
            String comma = "{";
            for (var entry : map.entrySet()) {
                quote(out.append(comma), String.valueOf(entry.getKey()));
                write(out.append(':'), entry.getValue(), depth + 1);
                comma = ",";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable<?> entries) {
            String comma = "";
            out.append('[');
            for (Object entry : entries) {
                write(out.append(comma), entry, depth + 1);
                comma = ",";
            }
            out.append(']');
        } else {
            writeScalar(out, value);
        }
    }

    private static void writeScalar(StringBuilder out, Object value) {
        boolean finite = !(value instanceof Double d && !Double.isFinite(d)) && !(value instanceof Float f && !Float.isFinite(f));
        if (value == null || !finite) out.append("null");
        else if (value instanceof Number || value instanceof Boolean) out.append(value);
        else quote(out, value.toString());
    }

    private static void quote(StringBuilder out, String text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') out.append('\\').append(c);
            else if (c < ' ') out.append(String.format("\\u%04x", (int) c));
            else out.append(c);
        }
        out.append('"');
    }

    private Object value() {
        skipSpace();
        switch (text.charAt(at)) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            default:
                return word();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> map = new HashMap<>();
        for (at++; next() != '}'; ) {
            String name = string();
            next();
            at++; // the colon
            map.put(name, value());
            if (next() == ',') at++;
        }
        at++;
        return map;
    }

    private List<Object> array() {
        List<Object> list = new ArrayList<>();
        for (at++; next() != ']'; ) {
            list.add(value());
            if (next() == ',') at++;
        }
        at++;
        return list;
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char c = text.charAt(at);
            out.append(c == '\\' ? escaped() : c);
        }
        at++;
        return out.toString();
    }

    private char escaped() {
        char c = text.charAt(++at);
        switch (c) {
            case 'n':
                return '\n';
            case 't':
                return '\t';
            case 'r':
                return '\r';
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'u':
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 3, at + 1), 16);
            default:
                return c;
        }
    }

    private Object word() {
        int begin = at;
        while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) at++;
        String word = text.substring(begin, at);
        switch (word) {
            case "null":
                return null;
            case "true":
                return true;
            case "false":
                return false;
            default:
                return Double.valueOf(word);
        }
    }

    private char next() {
        skipSpace();
        return text.charAt(at);
    }

    private void skipSpace() {
        while (" \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
    }
}
