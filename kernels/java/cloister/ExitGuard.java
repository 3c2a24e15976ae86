package cloister;

import java.lang.reflect.Method;
import java.security.Permission;

/** System.exit() ends the run, not the interpreter. */
@SuppressWarnings("removal")
final class ExitGuard extends SecurityManager {
    /** Thrown where code calls System.exit(). */
    static final class ExitRequest extends ThreadDeath {
        private static final long serialVersionUID = 1;
    }

    private final Runnable stopRun;
    private volatile boolean inRun;
    private volatile Integer code;

    ExitGuard(Runnable stopRun) {
        this.stopRun = stopRun;
    }

    /** Without the public method's warning on stderr. A Java that has no such thing ends at System.exit(). */
    void install() {
        try {
            Method set = System.class.getDeclaredMethod("implSetSecurityManager", SecurityManager.class);
            set.setAccessible(true);
            set.invoke(null, this);
        } catch (ReflectiveOperationException error) {
            // as said above
        }
    }

    void beginRun() {
        code = null;
        inRun = true;
    }

    void endRun() {
        inRun = false;
    }

    /** What the run called System.exit() with; null if it did not. */
    Integer code() {
        return code;
    }

    @Override
    public void checkExit(int status) {
        if (!inRun) return;
        code = status & 0xff;
        stopRun.run(); // code may catch what is thrown here, and another thread than the run's may have called
        throw new ExitRequest();
    }

    @Override
    public void checkPermission(Permission permission) {}

    @Override
    public void checkPermission(Permission permission, Object context) {}
}
