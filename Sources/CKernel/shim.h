// What the kernel is asked or told, by calls that Swift's Glibc module leaves out.
#ifndef FANFARE_CKERNEL_SHIM_H
#define FANFARE_CKERNEL_SHIM_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/timex.h>

// 1: something keeps the clock right; 0: nothing does; -1: the kernel does not say. Sets nothing.
static inline int fanfare_clock_is_kept(void) {
    struct timex facts = {.modes = 0};
    int state = adjtimex(&facts);
    return state < 0 ? -1 : state != TIME_ERROR;
}

// An eventfd that never blocks; -1 if the process has no descriptor left. Swift does not see its flags, an enum.
static inline int fanfare_eventfd_create(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

// The magic number of the file system that a path lies on, as in statfs(2); 0 where there is none.
static inline uint32_t fanfare_file_system(const char *path) {
    struct statfs facts;
    return statfs(path, &facts) == 0 ? (uint32_t)facts.f_type : 0;
}

// Called by a new thread: names it, and leaves the signals of the process to other threads. A write to a closed
// connection raises no SIGPIPE then. The signals of the thread's own faults stay: if they were blocked, a crash would
// end the process without a backtrace.
static inline void fanfare_begin_thread(const char *name) {
    prctl(PR_SET_NAME, name);
    static const int faults[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    sigset_t blocked;
    sigfillset(&blocked);
    for (unsigned number = 0; number < sizeof faults / sizeof faults[0]; number++) sigdelset(&blocked, faults[number]);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
}

// The first place of a sequence of bytes, in linear time. Swift's Glibc module leaves it out, as an extension of GNU.
extern void *memmem(const void *all, size_t all_bytes, const void *sought, size_t sought_bytes);

// The processor's counter of cycles; 0 where there is none that a program may read.
static inline uint64_t fanfare_cycles(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

#endif
