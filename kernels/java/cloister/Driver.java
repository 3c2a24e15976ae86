package cloister;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import jdk.jshell.DeclarationSnippet;
import jdk.jshell.JShell;
import jdk.jshell.Snippet;
import jdk.jshell.Snippet.Status;
import jdk.jshell.Snippet.SubKind;
import jdk.jshell.SnippetEvent;
import jdk.jshell.TypeDeclSnippet;
import jdk.jshell.execution.LocalExecutionControlProvider;
import sun.misc.Signal;

/** The driver's loop: takes a request, lets JShell run its code, reports how it went. */
public final class Driver {
    private static final int FAILED = 1, INTERRUPTED = 130;
    private static final List<String> IMPORTS = List.of("java.io.*", "java.math.*", "java.net.*", "java.nio.file.*",
            "java.util.*", "java.util.concurrent.*", "java.util.function.*", "java.util.regex.*", "java.util.stream.*",
            "static cloister.Display.*");
    private static String[] arguments = {};

    private final Channel channel = new Channel(3);
    private final Streams streams = new Streams(channel);
    private final Faults faults = new Faults();
    private final ExitGuard exits;
    private final JShell shell;
    private volatile boolean isRunning, isInterrupted;
    private int count;

    /** The arguments of the run, for the variable `args`. */
    public static String[] arguments() {
        return arguments.clone();
    }

    public static void main(String classes) throws Exception {
        new Driver(classes).serve();
    }

    private Driver(String classes) throws ReflectiveOperationException {
        shell = JShell.builder().executionEngine(new LocalExecutionControlProvider(), Map.of()).build();
        exits = new ExitGuard(shell::stop);
        shell.addToClasspath(classes);
        for (String name : IMPORTS) shell.eval("import " + name + ";");
        shell.eval("String[] args = {};");
    }

    private void serve() throws Exception {
        streams.install();
        Display.install(streams);
        exits.install();
        Signal.handle(new Signal("INT"), signal -> interrupt());
        channel.listen();
        channel.send("kernel_info_reply", Map.of("language", "java", "version", System.getProperty("java.version")));
        while (true) run(channel.receive());
    }

    private void interrupt() {
        if (!isRunning) return;
        isInterrupted = true;
        shell.stop();
    }

    // --- One run ---

    @SuppressWarnings("unchecked")
    private void run(Map<String, Object> request) throws IOException, ReflectiveOperationException {
        count++;
        isInterrupted = false;
        streams.beginRun((String) request.get("stdin_path"));
        Environment environment = new Environment((Map<String, String>) request.getOrDefault("env", Map.of()));
        environment.enter();
        int code;
        try {
            exits.beginRun();
            isRunning = true;
            streams.tell("status", Map.of("execution_state", "busy"));
            code = evaluate(request);
        } finally {
            isRunning = false;
            exits.endRun();
            environment.leave();
            streams.endRun();
        }
        streams.tell("execute_reply", Map.of("status", code == 0 ? "ok" : "error", "execution_count", count, "exit_code",
                code, "cwd", System.getProperty("user.dir"), "disk_error", code == 0 ? 0 : -1));
    }

    private int evaluate(Map<String, Object> request) {
        String file = (String) request.get("filename");
        if (request.get("cwd") instanceof String cwd && !cwd.equals(System.getProperty("user.dir"))) {
            String why = "`cwd` of a run cannot be set in Java: make a context with it";
            return fail(Faults.plain("InvalidRequest", why));
        }
        setArguments(request);
        String cell = file == null ? "cell " + count : file;
        Snippet last = null;
        undefined.clear();
        for (Cell.Part part : Cell.parts(shell.sourceCodeAnalysis(), (String) request.get("code"))) {
            List<SnippetEvent> events = shell.eval(part.source());
            for (SnippetEvent event : events) faults.remember(event.snippet(), cell, part.linesBefore());
            for (SnippetEvent event : events) {
                int code = judge(event, part, cell);
                if (code >= 0) return code;
                if (event.causeSnippet() == null) last = event.snippet();
                if (event.causeSnippet() == null) shown = event;
            }
        }
        for (Snippet snippet : undefined) {
            if (shell.status(snippet) != Status.RECOVERABLE_NOT_DEFINED) continue; // what it needs came behind it
            return fail(Faults.plain("UnresolvedReference", missing(snippet)));
        }
        if (file != null && last instanceof TypeDeclSnippet type) return callMain(type, cell);
        showResult();
        return 0;
    }

    private SnippetEvent shown; // of the last part of the run's code
    private final List<Snippet> undefined = new ArrayList<>(); // declarations of the run that need others

    /** The exit code if the run ends here; -1 if it goes on. */
    private int judge(SnippetEvent event, Cell.Part part, String cell) {
        if (exits.code() != null) return exits.code();
        if (isInterrupted) return fail(Faults.plain("Interrupted", "the run was interrupted"), INTERRUPTED);
        if (event.status() == Status.REJECTED) {
            var diags = shell.diagnostics(event.snippet()).toList();
            return fail(faults.refused(diags, part.source(), cell, part.linesBefore()));
        }
        if (event.exception() != null) return fail(faults.thrown(event.exception(), missing(event.snippet())));
        if (event.status() == Status.RECOVERABLE_NOT_DEFINED) undefined.add(event.snippet());
        return -1;
    }

    private String missing(Snippet snippet) {
        if (!(snippet instanceof DeclarationSnippet declared)) return "";
        return shell.unresolvedDependencies(declared).map(name -> name + " is not declared")
                .collect(Collectors.joining(", "));
    }

    /** A file whose last declaration is a class with `main` is a program. */
    private int callMain(TypeDeclSnippet type, String cell) {
        String call = type.name() + ".main(args);";
        boolean hasMain = type.source().matches("(?s).*\\bstatic\\s+void\\s+main\\s*\\(\\s*(final\\s+)?String\\b.*");
        if (!hasMain) return 0;
        for (SnippetEvent event : shell.eval(call)) {
            faults.remember(event.snippet(), cell, 0);
            int code = judge(event, new Cell.Part(call, 0), cell);
            if (code >= 0) return code;
        }
        return 0;
    }

    /** Constant code: what a run brings is data, and never becomes source. */
    private void setArguments(Map<String, Object> request) {
        if (!(request.get("argv") instanceof List<?> words)) return;
        arguments = words.stream().skip(1).map(String::valueOf).toArray(String[]::new);
        shell.eval("args = cloister.Driver.arguments();");
    }

    private void showResult() {
        SnippetEvent event = shown;
        shown = null;
        if (event == null || event.value() == null || event.value().equals("null")) return;
        SubKind kind = event.snippet().subKind();
        boolean isValue = kind == SubKind.TEMP_VAR_EXPRESSION_SUBKIND || kind == SubKind.VAR_VALUE_SUBKIND
                || kind == SubKind.OTHER_EXPRESSION_SUBKIND;
        if (!isValue || event.value().isEmpty()) return;
        streams.tell("execute_result",
                Map.of("data", Map.of("text/plain", event.value()), "metadata", Map.of(), "execution_count", count));
    }

    private int fail(Map<String, Object> content) {
        return fail(content, FAILED);
    }

    private int fail(Map<String, Object> content, int code) {
        shown = null;
        streams.tell("error", content);
        return code;
    }
}
