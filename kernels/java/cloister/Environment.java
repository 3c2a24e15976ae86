package cloister;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;

/** The variables of one run: in System.getenv() and as system properties. Processes that it starts have those of the context. */
final class Environment {
    private final Map<String, String> variables;
    private final Map<String, String> formerVariables = new HashMap<>(), formerProperties = new HashMap<>();

    Environment(Map<String, String> variables) {
        this.variables = variables;
    }

    void enter() throws ReflectiveOperationException {
        Map<String, String> all = all();
        variables.forEach((name, value) -> {
            formerVariables.put(name, all.put(name, value));
            formerProperties.put(name, System.setProperty(name, value));
        });
    }

    void leave() throws ReflectiveOperationException {
        Map<String, String> all = all();
        formerVariables.forEach((name, value) -> {
            if (value == null) all.remove(name);
            else all.put(name, value);
        });
        formerProperties.forEach((name, value) -> {
            if (value == null) System.clearProperty(name);
            else System.setProperty(name, value);
        });
    }

    /** The map behind System.getenv(), of which Java has no public form. */
    @SuppressWarnings("unchecked")
    private static Map<String, String> all() throws ReflectiveOperationException {
        var inner = Collections.unmodifiableMap(new HashMap<>()).getClass().getDeclaredField("m");
        inner.setAccessible(true);
        return (Map<String, String>) inner.get(System.getenv());
    }
}
