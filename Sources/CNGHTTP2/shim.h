// libnghttp2, and the Linux calls its connections run on that Swift's Glibc module leaves out.
#ifndef FANFARE_CNGHTTP2_SHIM_H
#define FANFARE_CNGHTTP2_SHIM_H

#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static inline int fanfare_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

// `epoll_event` is a packed structure: only C touches one.
static inline int fanfare_epoll_change(int poller, int operation, int descriptor, uint32_t events) {
    struct epoll_event event = {.events = events, .data = {.fd = descriptor}};
    return epoll_ctl(poller, operation, descriptor, &event);
}

static inline int fanfare_epoll_descriptor(const struct epoll_event *events, int index) {
    return events[index].data.fd;
}

static inline uint32_t fanfare_epoll_readiness(const struct epoll_event *events, int index) {
    return events[index].events;
}

// accept4 hides behind _GNU_SOURCE as well.
static inline int fanfare_accept(int listener) {
    int descriptor = accept(listener, NULL, NULL);
    if (descriptor < 0) return descriptor;
    if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0 || fcntl(descriptor, F_SETFL, O_NONBLOCK) < 0) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

#endif
