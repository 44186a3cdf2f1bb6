// Tells ThreadSanitizer of Swift's Mutex, which waits in the kernel (futex(2), PI), out of its sight: every
// critical section that was waited for would be reported as a race. Loaded in front of libswiftSynchronization.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

__attribute__((weak)) void __tsan_acquire(void *);
__attribute__((weak)) void __tsan_release(void *);

typedef void SWIFT (*Lock)(uint32_t thread, SELF void *self);
typedef void SWIFT (*Unlock)(SELF void *self);

static const char lockName[] = "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF";
static const char unlockName[] = "$s15Synchronization12_MutexHandleV11_unlockSlowyyF";

SWIFT void lockSlow(uint32_t thread, SELF void *self)
    __asm__("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
SWIFT void lockSlow(uint32_t thread, SELF void *self) {
    static Lock original;
    if (!original) original = (Lock)dlsym(RTLD_NEXT, lockName);
    original(thread, self);
    if (__tsan_acquire) __tsan_acquire(self);
}

SWIFT void unlockSlow(SELF void *self) __asm__("$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
SWIFT void unlockSlow(SELF void *self) {
    static Unlock original;
    if (!original) original = (Unlock)dlsym(RTLD_NEXT, unlockName);
    if (__tsan_release) __tsan_release(self);
    original(self);
}
