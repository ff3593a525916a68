#define _GNU_SOURCE

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "cinterposition.h"
#include "futex.h"
#include "real.h"
#include "times.h"

// A thread calls some of these from destructors of its own values, when a sanitizer has released it.
#pragma clang attribute push(__attribute__((disable_sanitizer_instrumentation)), apply_to = function)

REAL(int, clock_gettime, clockid_t, struct timespec *)
REAL(int, gettimeofday, struct timeval *, void *)
REAL(time_t, time, time_t *)
REAL(int, timespec_get, struct timespec *, int)
REAL(clock_t, clock, void)
REAL(int, clock_nanosleep, clockid_t, int, const struct timespec *, struct timespec *)
REAL(int, nanosleep, const struct timespec *, struct timespec *)
REAL(int, usleep, useconds_t)
REAL(unsigned, sleep, unsigned)
REAL(ssize_t, getrandom, void *, size_t, unsigned)
REAL(int, getentropy, void *, size_t)
REAL(uint32_t, arc4random, void)
REAL(void, arc4random_buf, void *, size_t)
REAL(uint32_t, arc4random_uniform, uint32_t)
REAL(unsigned long, getauxval, unsigned long)
REAL(long, syscall, long, long, long, long, long, long, long)

/// The definition in this file, also in a program in which the name means another one.
extern __typeof(clock_gettime) own_clock_gettime __attribute__((alias("clock_gettime"), visibility("hidden")));

int rlk_calls_are_caught(void) { return dlsym(RTLD_DEFAULT, "clock_gettime") == (void *)own_clock_gettime; }

// In a static executable, this is called before most of the C library works: `getenv` is its first function.
void rlk_end_without(const char *function) {
    static const char start[] = "RunLoopTesting: the C library has no function ";
    static const char end[] = " beside this program's; link the C library as a shared one\n";
    const struct iovec message[] = {
        {(void *)start, sizeof start - 1}, {(void *)function, strlen(function)}, {(void *)end, sizeof end - 1}};
    (void)!writev(2, message, 3);
    __builtin_trap();
}

// MARK: Times

static struct timespec timespec(int64_t nanoseconds) {
    return (struct timespec){nanoseconds / BILLION, nanoseconds % BILLION};
}

int clock_gettime(clockid_t id, struct timespec *time) {
    enum rlk_clock clock;
    if (!rlk_is_simulated() || !find_clock(id, &clock)) return real_clock_gettime()(id, time);
    *time = timespec(rlk_simulated_calls.time(clock));
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    if (!rlk_is_simulated()) return real_gettimeofday()(time, zone);
    int64_t now = rlk_simulated_calls.time(rlk_clock_wall);
    *time = (struct timeval){now / BILLION, now % BILLION / 1000};
    return 0;
}

time_t time(time_t *copy) {
    if (!rlk_is_simulated()) return real_time()(copy);
    time_t now = rlk_simulated_calls.time(rlk_clock_wall) / BILLION;
    if (copy) *copy = now;
    return now;
}

int timespec_get(struct timespec *time, int base) {
    if (!rlk_is_simulated() || base != TIME_UTC) return real_timespec_get()(time, base);
    *time = timespec(rlk_simulated_calls.time(rlk_clock_wall));
    return base;
}

clock_t clock(void) {
    if (!rlk_is_simulated()) return real_clock()();
    return rlk_simulated_calls.time(rlk_clock_processor) / (BILLION / CLOCKS_PER_SEC);
}

// MARK: Sleeps

static void sleep_for(int64_t nanoseconds) {
    int64_t now = rlk_simulated_calls.time(rlk_clock_monotonic);
    rlk_simulated_calls.sleep(rlk_clock_monotonic, nanoseconds > INT64_MAX - now ? INT64_MAX : now + nanoseconds);
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *time, struct timespec *rest) {
    enum rlk_clock clock;
    if (!rlk_is_simulated() || !find_clock(id, &clock)) return real_clock_nanosleep()(id, flags, time, rest);
    if (!is_valid(time)) return EINVAL;
    if (flags & TIMER_ABSTIME) {
        rlk_simulated_calls.sleep(clock, nanoseconds(time));
    } else {
        sleep_for(nanoseconds(time));
    }
    return 0;
}

int nanosleep(const struct timespec *time, struct timespec *rest) {
    if (!rlk_is_simulated()) return real_nanosleep()(time, rest);
    if (!is_valid(time) || time->tv_sec < 0) {
        errno = EINVAL;
        return -1;
    }
    sleep_for(nanoseconds(time));
    return 0;
}

int usleep(useconds_t microseconds) {
    if (!rlk_is_simulated()) return real_usleep()(microseconds);
    sleep_for(microseconds * 1000LL);
    return 0;
}

unsigned sleep(unsigned seconds) {
    if (!rlk_is_simulated()) return real_sleep()(seconds);
    sleep_for(seconds * BILLION);
    return 0;
}

// MARK: Random numbers

ssize_t getrandom(void *bytes, size_t count, unsigned flags) {
    if (!rlk_is_simulated()) return real_getrandom()(bytes, count, flags);
    rlk_simulated_calls.random(bytes, count);
    return count;
}

int getentropy(void *bytes, size_t count) {
    if (!rlk_is_simulated() || count > 256) return real_getentropy()(bytes, count);
    rlk_simulated_calls.random(bytes, count);
    return 0;
}

void arc4random_buf(void *bytes, size_t count) {
    if (!rlk_is_simulated()) return real_arc4random_buf()(bytes, count);
    rlk_simulated_calls.random(bytes, count);
}

uint32_t arc4random(void) {
    if (!rlk_is_simulated()) return real_arc4random()();
    uint32_t number;
    rlk_simulated_calls.random(&number, sizeof number);
    return number;
}

uint32_t arc4random_uniform(uint32_t bound) {
    if (!rlk_is_simulated()) return real_arc4random_uniform()(bound);
    if (bound < 2) return 0;
    // Numbers below the rest would come more often than others.
    uint32_t number, rest = -bound % bound;
    do number = arc4random(); while (number < rest);
    return number % bound;
}

// MARK: System calls by number

// All six arguments are passed on, given or not, as the library does.
long syscall(long number, ...) {
    va_list arguments;
    va_start(arguments, number);
    long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long);
    long d = va_arg(arguments, long), e = va_arg(arguments, long), f = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_gettid) return gettid();
    if (number == SYS_futex)
        return rlk_futex((uint32_t *)a, b, c, (const struct timespec *)d, (uint32_t *)e, f);
    if (rlk_is_simulated()) {
        switch (number) {
            case SYS_getrandom: return getrandom((void *)a, b, c);
            case SYS_clock_gettime: return clock_gettime(a, (struct timespec *)b);
            case SYS_gettimeofday: return gettimeofday((struct timeval *)a, (void *)b);
            case SYS_nanosleep: return nanosleep((struct timespec *)a, (struct timespec *)b);
            case SYS_clock_nanosleep: {
                int status = clock_nanosleep(a, b, (struct timespec *)c, (struct timespec *)d);
                if (status == 0) return 0;
                errno = status;
                return -1;
            }
#ifdef SYS_time
            case SYS_time: return time((time_t *)a);
#endif
        }
    }
    return real_syscall()(number, a, b, c, d, e, f);
}

// MARK: The kernel's shared object

/// A caller that looks for the kernel's object would read the clocks in it without the C library.
unsigned long getauxval(unsigned long type) {
    if (type == AT_SYSINFO_EHDR && rlk_is_simulated()) {
        Dl_info caller = {0};
        int is_found = dladdr(__builtin_return_address(0), &caller);
        const char *name = is_found && caller.dli_sname ? caller.dli_sname : is_found ? caller.dli_fname : "a function";
        char why[256];
        snprintf(why, sizeof why, "looks for the clocks of the vDSO, which are real, in %s", name);
        rlk_simulated_calls.escape(why);
    }
    return real_getauxval()(type);
}

#pragma clang attribute pop
