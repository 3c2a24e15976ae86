// Entry: compiles the driver that lies beside this file, and starts it.
//
// JShell needs the compiler in any case, so this costs little; and the driver comes with the runtime, whatever JDK a
// template has. The driver's classes must lie on the class path: the code of runs calls some of them.

import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import javax.tools.JavaFileObject;
import javax.tools.ToolProvider;

class Start {
    public static void main(String[] args) throws Exception {
        compile(Path.of(args[1]), args[0]);
        Class<?> driver = ClassLoader.getSystemClassLoader().loadClass("cloister.Driver");
        driver.getMethod("main", String.class).invoke(null, args[0]);
    }

    private static void compile(Path sources, String classes) throws Exception {
        var compiler = ToolProvider.getSystemJavaCompiler();
        try (var files = compiler.getStandardFileManager(null, null, null); var found = Files.list(sources)) {
            Iterable<? extends JavaFileObject> units =
                    files.getJavaFileObjectsFromPaths(found.filter(file -> file.toString().endsWith(".java")).toList());
            var said = new StringWriter(); // that sun.misc.Signal is not for everybody: stderr belongs to the runs
            var options = List.of("-d", classes, "-proc:none");
            if (compiler.getTask(said, files, null, options, null, units).call()) return;
            System.err.print(said);
            System.exit(1);
        }
    }
}
