package cloister;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.UnresolvedReferenceException;

/** What went wrong, as the content of an `error` message, with the lines of the cell in place of JShell's own. */
final class Faults {
    private static final int FRAMES_MAX = 50, CAUSES_MAX = 20;

    /** Where a snippet stands: the name of its cell, and the lines before it there. */
    private record Place(String cell, int linesBefore) {}

    private final Map<String, Place> places = new HashMap<>();

    void remember(Snippet snippet, String cell, int linesBefore) {
        places.put("#" + snippet.id(), new Place(cell, linesBefore));
    }

    static Map<String, Object> content(String name, String value, List<String> traceback) {
        return Map.of("ename", name, "evalue", value, "traceback", traceback);
    }

    static Map<String, Object> plain(String name, String value) {
        return content(name, value, List.of(name + ": " + value));
    }

    /** Code that the compiler refused. */
    Map<String, Object> refused(List<Diag> diags, String source, String cell, int linesBefore) {
        List<String> lines = new ArrayList<>();
        String first = null;
        for (Diag diag : diags) {
            if (!diag.isError()) continue;
            String message = diag.getMessage(Locale.ENGLISH).replaceAll("\\n *location: class *(\\n|$)", "$1");
            if (first == null) first = message.lines().findFirst().orElse("");
            int at = (int) Math.max(0, Math.min(diag.getStartPosition(), source.length()));
            int line = 1 + linesBefore + (int) source.substring(0, at).chars().filter(c -> c == '\n').count();
            lines.add(cell + ":" + line + ": error: " + message);
            int begin = source.lastIndexOf('\n', at - 1) + 1, end = source.indexOf('\n', at);
            lines.add(source.substring(begin, end < 0 ? source.length() : end));
            lines.add(" ".repeat(at - begin) + "^");
        }
        if (first == null) first = "this is no Java";
        if (lines.isEmpty()) lines.add(cell + ": error: " + first);
        return content("CompilationError", first, lines);
    }

    Map<String, Object> thrown(JShellException exception, String missing) {
        List<String> lines = new ArrayList<>();
        trace(exception, lines, missing, 0);
        return content(nameOf(exception), messageOf(exception, missing), lines);
    }

    private void trace(Throwable exception, List<String> lines, String missing, int depth) {
        String message = messageOf(exception, missing);
        lines.add((depth == 0 ? "" : "Caused by: ") + nameOf(exception) + (message.isEmpty() ? "" : ": " + message));
        StackTraceElement[] frames = exception.getStackTrace();
        for (int i = 0; i < Math.min(frames.length, FRAMES_MAX); i++) lines.add("    at " + told(frames[i]));
        if (frames.length > FRAMES_MAX) lines.add("    … " + (frames.length - FRAMES_MAX) + " more");
        if (exception.getCause() != null && depth < CAUSES_MAX) trace(exception.getCause(), lines, missing, depth + 1);
    }

    private String told(StackTraceElement frame) {
        Place place = frame.getFileName() == null ? null : places.get(frame.getFileName());
        if (place == null) return frame.toString();
        String line = place.cell + ":" + (frame.getLineNumber() + place.linesBefore);
        String method = frame.getMethodName();
        boolean isTop = method == null || method.isEmpty() || method.startsWith("do_it$");
        return isTop ? line : (frame.getClassName().isEmpty() ? "" : frame.getClassName() + ".") + method + " (" + line + ")";
    }

    private static String nameOf(Throwable exception) {
        if (exception instanceof EvalException thrown) return thrown.getExceptionClassName();
        return exception instanceof UnresolvedReferenceException ? "UnresolvedReference" : exception.getClass().getName();
    }

    private static String messageOf(Throwable exception, String missing) {
        if (exception instanceof UnresolvedReferenceException) return missing;
        return exception.getMessage() == null ? "" : exception.getMessage();
    }
}
