// E02: the old and the new mount interface, and lifting each mask.
#include "attempt.h"

#define ATTEMPT_CALL(what, ...) attempt(what, syscall(__VA_ARGS__))

static void each_mount_point(void) {
    FILE* mounts = fopen("/proc/self/mountinfo", "r");
    char line[4096], point[1024], what[1200];
    while (mounts != NULL && fgets(line, sizeof(line), mounts) != NULL) {
        if (sscanf(line, "%*s %*s %*s %*s %1023s", point) != 1) continue;
        snprintf(what, sizeof(what), "umount %s", point);
        attempt(what, umount2(point, MNT_DETACH));
        snprintf(what, sizeof(what), "remount %s for writing", point);
        attempt(what, mount(NULL, point, NULL, MS_REMOUNT | MS_BIND, NULL));
    }
    must("read the mounts", mounts == NULL ? -1 : 0);
}

int main(void) {
    mkdir("/tmp/mounted", 0700);
    attempt("tmpfs", mount("none", "/tmp/mounted", "tmpfs", 0, NULL));
    attempt("proc", mount("none", "/tmp/mounted", "proc", 0, NULL));
    attempt("sysfs", mount("none", "/tmp/mounted", "sysfs", 0, NULL));
    attempt("cgroup", mount("none", "/tmp/mounted", "cgroup", 0, "memory"));
    attempt("cgroup2", mount("none", "/tmp/mounted", "cgroup2", 0, NULL));
    attempt("overlay", mount("none", "/tmp/mounted", "overlay", 0, "lowerdir=/"));
    attempt("bind", mount("/etc", "/tmp/mounted", NULL, MS_BIND | MS_REC, NULL));
    attempt("move", mount("/proc", "/tmp/mounted", NULL, MS_MOVE, NULL));
    attempt("make shared", mount(NULL, "/", NULL, MS_SHARED | MS_REC, NULL));
    ATTEMPT_CALL("pivot_root", SYS_pivot_root, ".", ".");
    ATTEMPT_CALL("fsopen", SYS_fsopen, "tmpfs", 0);
    ATTEMPT_CALL("fsconfig", SYS_fsconfig, 0, 0, 0, 0, 0);
    ATTEMPT_CALL("fsmount", SYS_fsmount, 0, 0, 0);
    ATTEMPT_CALL("fspick", SYS_fspick, AT_FDCWD, "/", 0);
    ATTEMPT_CALL("open_tree", SYS_open_tree, AT_FDCWD, "/", 1);
    ATTEMPT_CALL("open_tree without a copy", SYS_open_tree, AT_FDCWD, "/", 0);
    ATTEMPT_CALL("move_mount", SYS_move_mount, AT_FDCWD, "/proc", AT_FDCWD, "/tmp/mounted", 0);
    ATTEMPT_CALL("mount_setattr", SYS_mount_setattr, AT_FDCWD, "/", 0, (char[32]){0}, 32);
    ATTEMPT_CALL("statmount", 457, 0, 0, 0, 0);
    ATTEMPT_CALL("listmount", 458, 0, 0, 0, 0);
    ATTEMPT_CALL("open_tree_attr", 467, AT_FDCWD, "/", 1, 0, 0);
    each_mount_point();
    return 0;
}
