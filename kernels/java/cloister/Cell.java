package cloister;

import java.util.ArrayList;
import java.util.List;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.SourceCodeAnalysis.Completeness;

/** The code of one run, taken apart into what JShell evaluates one by one. */
final class Cell {
    /** One declaration, statement or expression, and the lines before it. */
    record Part(String source, int linesBefore) {}

    private Cell() {}

    static List<Part> parts(SourceCodeAnalysis analysis, String code) {
        List<Part> parts = new ArrayList<>();
        String rest = code;
        while (!rest.isBlank()) {
            String text = rest;
            int linesBefore = lines(code.substring(0, code.length() - text.length()));
            var info = analysis.analyzeCompletion(text);
            boolean whole = info.completeness().isComplete() && info.source() != null;
            String left = whole && info.remaining() != null ? info.remaining() : "";
            String source = text.substring(0, text.length() - left.length());
            // Comments behind the last statement are nothing to evaluate.
            if (info.completeness() != Completeness.EMPTY) parts.add(part(source, linesBefore));
            rest = left.length() < text.length() ? left : "";
        }
        return parts;
    }

    /** Without the empty lines in front, which would count. */
    private static Part part(String source, int linesBefore) {
        String stripped = source.stripLeading();
        return new Part(stripped, linesBefore + lines(source.substring(0, source.length() - stripped.length())));
    }

    private static int lines(String text) {
        return (int) text.chars().filter(c -> c == '\n').count();
    }
}
