// libcurl, with a typed inline wrapper for each variadic call: Swift cannot call C variadics.
#ifndef FANFARE_CCURL_SHIM_H
#define FANFARE_CCURL_SHIM_H

#include <curl/curl.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

static inline CURLcode fanfare_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode fanfare_curl_set_pointer(CURL *handle, CURLoption option, const void *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode fanfare_curl_set_write(CURL *handle, curl_write_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, callback);
    return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_WRITEDATA, context);
}

static inline CURLcode fanfare_curl_set_header(CURL *handle, curl_write_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, callback);
    return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_HEADERDATA, context);
}

static inline CURLcode fanfare_curl_set_progress(CURL *handle, curl_xferinfo_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, callback);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_XFERINFODATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
}

static inline CURLcode fanfare_curl_set_sockopt(CURL *handle, curl_sockopt_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_SOCKOPTFUNCTION, callback);
    return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_SOCKOPTDATA, context);
}

static inline CURLcode fanfare_curl_set_prereq(CURL *handle, curl_prereq_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, callback);
    return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_PREREQDATA, context);
}

/* The wrappers below read one field of a transfer; 0 or NULL where libcurl does not know it. */

static inline long fanfare_curl_get_long(CURL *handle, CURLINFO info) {
    long value = 0;
    return curl_easy_getinfo(handle, info, &value) == CURLE_OK ? value : 0;
}

static inline curl_off_t fanfare_curl_get_offset(CURL *handle, CURLINFO info) {
    curl_off_t value = 0;
    return curl_easy_getinfo(handle, info, &value) == CURLE_OK ? value : 0;
}

static inline void *fanfare_curl_get_private(CURL *handle) {
    char *value = NULL;
    return curl_easy_getinfo(handle, CURLINFO_PRIVATE, &value) == CURLE_OK ? value : NULL;
}

static inline CURLMcode fanfare_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode fanfare_curl_multi_set_socket(CURLM *multi, curl_socket_callback callback, void *context) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, callback);
    return code != CURLM_OK ? code : curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
}

static inline CURLMcode fanfare_curl_multi_set_timer(CURLM *multi, curl_multi_timer_callback callback, void *context) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, callback);
    return code != CURLM_OK ? code : curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
}

/* What watches libcurl's sockets. Swift's Glibc module leaves these calls out, and `epoll_event` is a packed structure
   that only C should touch. */

static inline int fanfare_curl_poller_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

static inline int fanfare_curl_bell_create(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

/* `action` is CURL_POLL_IN, _OUT, _INOUT, or _REMOVE. */
static inline int fanfare_curl_poller_watch(int poller, int file, int action, int is_known) {
    struct epoll_event event = {.events = 0, .data = {.fd = file}};
    if (action & CURL_POLL_IN) event.events |= EPOLLIN;
    if (action & CURL_POLL_OUT) event.events |= EPOLLOUT;
    if (action == CURL_POLL_REMOVE) return epoll_ctl(poller, EPOLL_CTL_DEL, file, &event);
    return epoll_ctl(poller, is_known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, file, &event);
}

/* Waits for one file; gives it and libcurl's CURL_CSELECT_ mask. 0 after the time, negative on error. */
static inline int fanfare_curl_poller_wait(int poller, int milliseconds, int *file, int *mask) {
    struct epoll_event event;
    int count = epoll_wait(poller, &event, 1, milliseconds);
    if (count != 1) return count;
    *file = event.data.fd;
    *mask = (event.events & EPOLLIN ? CURL_CSELECT_IN : 0) | (event.events & EPOLLOUT ? CURL_CSELECT_OUT : 0)
        | (event.events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    return count;
}

/* Linux keeps 15 bytes. */
static inline void fanfare_curl_name_thread(const char *name) { prctl(PR_SET_NAME, name); }

#endif
