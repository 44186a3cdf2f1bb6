// open(2) for the whole program, so that too many open files do not end it.
//
// libdispatch looks every second at the threads of a queue with waiting work, in /proc/THREAD/stat, and ends the process
// by SIGILL if it cannot open that file (_dispatch_workq_monitor_pools). While no descriptor is free, this open gives it a
// number that no file has: read(2) and close(2) of it fail, and libdispatch counts the thread as not running.
//
// And streams 0 to 2 for a process that was started without them (`2>&-`). The first files and connections would get
// these numbers, and notes and results would be written into them. A result that no process can read still is an error:
// its stream takes no writes.

#define _GNU_SOURCE
#include "open_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_thread_state(const char *path) {
    if (strncmp(path, "/proc/", 6) != 0) return 0;
    const char *rest = path + 6;
    size_t digits = strspn(rest, "0123456789");
    return digits > 0 && strcmp(rest + digits, "/stat") == 0;
}

static int is_exhausted(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

__attribute__((visibility("default"))) int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (file >= 0 || !is_exhausted(errno) || flags != O_NONBLOCK || !is_thread_state(path)) return file;
    return INT_MAX;
}

__attribute__((constructor)) static void fill_standard_streams(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++) {
        if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
        // The lowest free number is this one.
        syscall(SYS_openat, AT_FDCWD, "/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY, 0);
    }
}
