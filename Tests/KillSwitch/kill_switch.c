// Ends a process with SIGKILL at a system call chosen beforehand: loaded before its libraries (LD_PRELOAD), so that the
// program under test is the very one that people run, without a hook in it.
//
//   KILL_SWITCH=point:n     the n-th time, from 1
//
//   wal       before the n-th write to a log of SQLite's ("-wal"): in the middle of a transaction
//   unsynced  before the n-th sync of such a log: its transaction is written, and nobody was told
//   synced    after the n-th sync of such a log, which only leases wait for: committed, and nothing of it was sent
//   send      in the n-th write to a TCP socket: half of it leaves
//   received  after the n-th read from a TCP socket that brought something: answers are here, and not recorded
//   asked     in the n-th send to a PostgreSQL server's Unix socket: half of a statement leaves
//   told      after the n-th read from such a socket that brought something: done there, and not heard here
//   stopping  before the n-th time that the file STOP gets its name: it is not there yet, or is the one before
//   stopped   after that
//   lifting   before the n-th time that the file STOP is removed
//   lifted    after that
//   exiting   when the exit handlers of its libraries run; the number says nothing
//
//   KILL_WORD=text          counts from the first write to such a log or such a socket on that holds the text
//   KILL_SIGNAL=stop        SIGSTOP in place of SIGKILL: when it is continued, it goes on as if nothing had been
//
//   CLOCK_OFFSET=seconds    the wall clock shows so much more, or less
//   CLOCK_FILE=path         the same as the file says at this moment: eight bytes, a signed number of seconds
//   CLOCK_STANDS=1          the clocks that count from the machine's start do not count the time in which the process was
//                           stopped, as in a virtual machine that its hypervisor paused (kvm-clock)
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

enum point { none, wal, unsynced, synced, sending, received, asked, told, stopping, stopped, lifting, lifted,
             exiting };

static enum point chosen = none;
static atomic_long left;
static long offset;
// In the file that whoever turns the clock writes to.
static const _Atomic int64_t *turned;
static int stands;
static int fatal = SIGKILL;
static const char *word;
static atomic_int is_heard = 1;

__attribute__((constructor)) static void arm(void) {
    static const struct { const char *name; enum point point; } points[] = {
        {"wal:", wal}, {"unsynced:", unsynced}, {"synced:", synced}, {"send:", sending}, {"received:", received},
        {"asked:", asked}, {"told:", told}, {"stopping:", stopping}, {"stopped:", stopped}, {"lifting:", lifting},
        {"lifted:", lifted}, {"exiting:", exiting},
    };
    const char *seconds = getenv("CLOCK_OFFSET");
    if (seconds != NULL) offset = atol(seconds);
    const char *path = getenv("CLOCK_FILE");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        void *bytes = mmap(NULL, sizeof *turned, PROT_READ, MAP_SHARED, file, 0);
        if (bytes != MAP_FAILED) turned = bytes;
        close(file);
    }
    const char *standing = getenv("CLOCK_STANDS");
    stands = standing != NULL && strcmp(standing, "1") == 0;
    const char *name = getenv("KILL_SIGNAL");
    if (name != NULL && strcmp(name, "stop") == 0) fatal = SIGSTOP;
    word = getenv("KILL_WORD");
    if (word != NULL) atomic_store(&is_heard, 0);
    const char *text = getenv("KILL_SWITCH");
    if (text == NULL) return;
    for (size_t index = 0; index < sizeof points / sizeof points[0]; index++) {
        size_t length = strlen(points[index].name);
        if (strncmp(text, points[index].name, length) != 0) continue;
        atomic_store(&left, atol(text + length));
        chosen = points[index].point;
    }
}

static void end(void) {
    kill(getpid(), fatal);
    if (fatal == SIGKILL) for (;;) pause();
}

static int is_due(void) { return atomic_load(&is_heard) && atomic_fetch_sub(&left, 1) == 1; }

static void hear(const void *bytes, size_t count) {
    if (!atomic_load(&is_heard) && memmem(bytes, count, word, strlen(word)) != NULL) atomic_store(&is_heard, 1);
}

__attribute__((destructor)) static void exit_handler(void) {
    if (chosen == exiting) end();
}

static int is_log(int file) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name);
    return length > 4 && memcmp(name + length - 4, "-wal", 4) == 0;
}

static int is_tcp(int file) {
    int saved = errno, type = 0, domain = 0;
    socklen_t size = sizeof type;
    int is = getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
    size = sizeof domain;
    is = is && getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && (domain == AF_INET || domain == AF_INET6);
    errno = saved;
    return is;
}

static int is_server(int file) {
    int saved = errno;
    struct sockaddr_un peer;
    memset(&peer, 0, sizeof peer);
    socklen_t size = sizeof peer - 1;
    int is = getpeername(file, (struct sockaddr *)&peer, &size) == 0 && peer.sun_family == AF_UNIX
        && strstr(peer.sun_path, ".s.PGSQL.") != NULL;
    errno = saved;
    return is;
}

// A write to a log, before which it is to end.
static int logs(int file, const void *bytes, size_t count) {
    if (chosen == none || (chosen != wal && atomic_load(&is_heard)) || !is_log(file)) return 0;
    hear(bytes, count);
    return chosen == wal && is_due();
}

// The next definition of the function that this one stands before.
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// How long the process was stopped until now: some thread of one that runs looks at a clock far more often than that.
static long long stopped_for(void) {
    static const long long longest = 2000000000;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static long long seen, sum;
    struct timespec now;
    pthread_mutex_lock(&lock);
    NEXT(clock_gettime)(CLOCK_MONOTONIC, &now);
    long long moment = now.tv_sec * 1000000000LL + now.tv_nsec;
    if (seen != 0 && moment - seen > longest) sum += moment - seen;
    seen = moment;
    long long found = sum;
    pthread_mutex_unlock(&lock);
    return found;
}

static long shift(void) { return turned == NULL ? offset : offset + (long)atomic_load(turned); }

int clock_gettime(clockid_t clock, struct timespec *shown) {
    long long stopped = stands && (clock == CLOCK_BOOTTIME || clock == CLOCK_MONOTONIC) ? stopped_for() : 0;
    int result = NEXT(clock_gettime)(clock, shown);
    if (result == 0 && stopped > 0) {
        long long moment = shown->tv_sec * 1000000000LL + shown->tv_nsec - stopped;
        shown->tv_sec = moment / 1000000000LL;
        shown->tv_nsec = moment % 1000000000LL;
    }
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) shown->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *restrict shown, void *restrict zone) {
    int result = NEXT(gettimeofday)(shown, zone);
    if (result == 0) shown->tv_sec += shift();
    return result;
}

time_t time(time_t *shown) {
    time_t now = NEXT(time)(NULL) + shift();
    if (shown != NULL) *shown = now;
    return now;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    if (logs(file, bytes, count)) end();
    return NEXT(pwrite64)(file, bytes, count, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    if (logs(file, bytes, count)) end();
    return NEXT(pwrite)(file, bytes, count, offset);
}

static int sync_log(int file, int (*next)(int)) {
    int is = (chosen == synced || chosen == unsynced) && is_log(file) && is_due();
    if (is && chosen == unsynced) end();
    int result = next(file);
    if (is) end();
    return result;
}

int fdatasync(int file) { return sync_log(file, NEXT(fdatasync)); }
int fsync(int file) { return sync_log(file, NEXT(fsync)); }

static int is_send(int file, const void *bytes, size_t count) {
    if (chosen != none && !atomic_load(&is_heard) && is_server(file)) hear(bytes, count);
    return ((chosen == sending && is_tcp(file)) || (chosen == asked && is_server(file))) && is_due();
}

ssize_t send(int file, const void *bytes, size_t count, int flags) {
    if (is_send(file, bytes, count)) {
        if (fatal == SIGKILL) NEXT(send)(file, bytes, count / 2, flags);
        end();
    }
    return NEXT(send)(file, bytes, count, flags);
}

ssize_t write(int file, const void *bytes, size_t count) {
    if (is_send(file, bytes, count)) {
        if (fatal == SIGKILL) NEXT(write)(file, bytes, count / 2);
        end();
    }
    return NEXT(write)(file, bytes, count);
}

static ssize_t after_read(int file, ssize_t count) {
    int is = count > 0 && ((chosen == received && is_tcp(file)) || (chosen == told && is_server(file)));
    if (is && is_due()) end();
    return count;
}

ssize_t recv(int file, void *bytes, size_t count, int flags) {
    return after_read(file, NEXT(recv)(file, bytes, count, flags));
}

ssize_t read(int file, void *bytes, size_t count) { return after_read(file, NEXT(read)(file, bytes, count)); }

static int is_stop(const char *path) {
    size_t length = strlen(path);
    return length > 5 && memcmp(path + length - 5, "/STOP", 5) == 0;
}

int rename(const char *old, const char *new) {
    if (chosen == stopping && is_stop(new) && is_due()) end();
    int result = NEXT(rename)(old, new);
    if (chosen == stopped && is_stop(new) && is_due()) end();
    return result;
}

int unlink(const char *path) {
    if (chosen == lifting && is_stop(path) && is_due()) end();
    int result = NEXT(unlink)(path);
    if (chosen == lifted && is_stop(path) && is_due()) end();
    return result;
}
