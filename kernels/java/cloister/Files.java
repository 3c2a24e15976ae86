package cloister;

import java.io.FileDescriptor;

/** Descriptors that the process was born with. */
final class Files {
    private Files() {}

    static FileDescriptor descriptor(int fd) throws ReflectiveOperationException {
        var constructor = FileDescriptor.class.getDeclaredConstructor(int.class);
        constructor.setAccessible(true);
        return constructor.newInstance(fd);
    }
}
