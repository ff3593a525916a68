#define _GNU_SOURCE

#include <stdint.h>

#include "real.h"

// Timers of Dispatch are real. A thread of a simulation computes their dates from a simulated clock, so these are moved to the
// same distance from the real present: a task that sleeps outside of the simulation sleeps as long as it wants to.
//
// All weak, because a program may have Dispatch in itself, or not at all.

/// Nanoseconds of the monotonic clock; with bit 62 of the one that counts sleeps; with bit 63, negated, of the wall clock.
typedef uint64_t dispatch_time_t;

extern dispatch_time_t dispatch_time(dispatch_time_t when, int64_t delta) __attribute__((weak));
extern dispatch_time_t dispatch_walltime(const void *when, int64_t delta) __attribute__((weak));

REAL(void, dispatch_after, dispatch_time_t, void *, void *)
REAL(void, dispatch_after_f, dispatch_time_t, void *, void *, void (*)(void *))
REAL(void, dispatch_source_set_timer, void *, dispatch_time_t, uint64_t, uint64_t)

#define ON_REAL_TIME(call)                                                                                             \
    do {                                                                                                               \
        unsigned *flag = rlk_set_simulated(0);                                                                         \
        call;                                                                                                          \
        rlk_set_simulated(flag);                                                                                       \
    } while (0)

static dispatch_time_t real_date(dispatch_time_t when) {
    const dispatch_time_t forever = ~0ULL, wall = 1ULL << 63, boot = 1ULL << 62;
    if (!rlk_is_simulated() || when == 0 || when == forever) return when;
    enum rlk_clock clock = when & wall ? rlk_clock_wall : when & boot ? rlk_clock_boot : rlk_clock_monotonic;
    // Two below zero is the present of the wall clock.
    int64_t date = when & wall ? -(int64_t)when : (int64_t)(when & ~boot);
    int64_t delta = when == forever - 1 ? 0 : date - rlk_simulated_calls.time(clock);
    ON_REAL_TIME(when = when & wall ? dispatch_walltime(0, delta) : dispatch_time(0, delta));
    return when;
}

__attribute__((weak)) void dispatch_after(dispatch_time_t when, void *queue, void *block) {
    when = real_date(when);
    ON_REAL_TIME(real_dispatch_after()(when, queue, block));
}

__attribute__((weak)) void dispatch_after_f(dispatch_time_t when, void *queue, void *context, void (*work)(void *)) {
    when = real_date(when);
    ON_REAL_TIME(real_dispatch_after_f()(when, queue, context, work));
}

__attribute__((weak)) void dispatch_source_set_timer(void *source, dispatch_time_t start, uint64_t interval, uint64_t leeway) {
    start = real_date(start);
    ON_REAL_TIME(real_dispatch_source_set_timer()(source, start, interval, leeway));
}
