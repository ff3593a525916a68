#define _GNU_SOURCE

#include <stddef.h>
#include <stdint.h>

#include "escapes.h"
#include "real.h"

// Blocks, timers and sources of Dispatch come to threads of its own, which no simulation knows: each is an escape.
//
// Its timers are real. A thread of a simulation computes their dates from a simulated clock, so these are moved to the
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

REAL(void, dispatch_async, void *, void *)
REAL(void, dispatch_async_f, void *, void *, void (*)(void *))
REAL(void, dispatch_barrier_async, void *, void *)
REAL(void, dispatch_barrier_async_f, void *, void *, void (*)(void *))
REAL(void, dispatch_group_async, void *, void *, void *)
REAL(void, dispatch_group_async_f, void *, void *, void *, void (*)(void *))
REAL(void, dispatch_group_notify, void *, void *, void *)
REAL(void, dispatch_group_notify_f, void *, void *, void *, void (*)(void *))
REAL(void, dispatch_apply, size_t, void *, void *)
REAL(void, dispatch_apply_f, size_t, void *, void *, void (*)(void *, size_t))
REAL(void *, dispatch_source_create, const void *, uintptr_t, uintptr_t, void *)
REAL(void, dispatch_activate, void *)
REAL(void, dispatch_resume, void *)
REAL(void, dispatch_release, void *)
REAL(void, dispatch_source_cancel, void *)
REAL(void, dispatch_source_merge_data, void *, uintptr_t)
REAL(void, dispatch_source_set_event_handler, void *, void *)
REAL(void, dispatch_source_set_cancel_handler, void *, void *)
REAL(void, dispatch_source_set_registration_handler, void *, void *)
REAL(void, dispatch_group_leave, void *)

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

static void escape(void) { rlk_escape("hands a block to Dispatch, whose threads are none of the simulation", NULL); }

__attribute__((weak)) void dispatch_async(void *queue, void *block) {
    escape();
    ON_REAL_TIME(real_dispatch_async()(queue, block));
}

__attribute__((weak)) void dispatch_async_f(void *queue, void *context, void (*work)(void *)) {
    escape();
    ON_REAL_TIME(real_dispatch_async_f()(queue, context, work));
}

__attribute__((weak)) void dispatch_barrier_async(void *queue, void *block) {
    escape();
    ON_REAL_TIME(real_dispatch_barrier_async()(queue, block));
}

__attribute__((weak)) void dispatch_barrier_async_f(void *queue, void *context, void (*work)(void *)) {
    escape();
    ON_REAL_TIME(real_dispatch_barrier_async_f()(queue, context, work));
}

__attribute__((weak)) void dispatch_group_async(void *group, void *queue, void *block) {
    escape();
    ON_REAL_TIME(real_dispatch_group_async()(group, queue, block));
}

__attribute__((weak)) void dispatch_group_async_f(void *group, void *queue, void *context, void (*work)(void *)) {
    escape();
    ON_REAL_TIME(real_dispatch_group_async_f()(group, queue, context, work));
}

__attribute__((weak)) void dispatch_group_notify(void *group, void *queue, void *block) {
    escape();
    ON_REAL_TIME(real_dispatch_group_notify()(group, queue, block));
}

__attribute__((weak)) void dispatch_group_notify_f(void *group, void *queue, void *context, void (*work)(void *)) {
    escape();
    ON_REAL_TIME(real_dispatch_group_notify_f()(group, queue, context, work));
}

// The caller has a share of the calls.
__attribute__((weak)) void dispatch_apply(size_t count, void *queue, void *block) {
    escape();
    real_dispatch_apply()(count, queue, block);
}

__attribute__((weak)) void dispatch_apply_f(size_t count, void *queue, void *context, void (*work)(void *, size_t)) {
    escape();
    real_dispatch_apply_f()(count, queue, context, work);
}

__attribute__((weak)) void *dispatch_source_create(const void *type, uintptr_t handle, uintptr_t mask, void *queue) {
    rlk_escape("makes a source of Dispatch, whose threads are none of the simulation", NULL);
    void *source;
    ON_REAL_TIME(source = real_dispatch_source_create()(type, handle, mask, queue));
    return source;
}

// Dispatch may start a thread for an object, the making of which was an escape.
__attribute__((weak)) void dispatch_activate(void *object) { ON_REAL_TIME(real_dispatch_activate()(object)); }
__attribute__((weak)) void dispatch_resume(void *object) { ON_REAL_TIME(real_dispatch_resume()(object)); }
__attribute__((weak)) void dispatch_release(void *object) { ON_REAL_TIME(real_dispatch_release()(object)); }
__attribute__((weak)) void dispatch_group_leave(void *group) { ON_REAL_TIME(real_dispatch_group_leave()(group)); }

__attribute__((weak)) void dispatch_source_cancel(void *source) { ON_REAL_TIME(real_dispatch_source_cancel()(source)); }

__attribute__((weak)) void dispatch_source_merge_data(void *source, uintptr_t data) {
    ON_REAL_TIME(real_dispatch_source_merge_data()(source, data));
}

__attribute__((weak)) void dispatch_source_set_event_handler(void *source, void *block) {
    ON_REAL_TIME(real_dispatch_source_set_event_handler()(source, block));
}

__attribute__((weak)) void dispatch_source_set_cancel_handler(void *source, void *block) {
    ON_REAL_TIME(real_dispatch_source_set_cancel_handler()(source, block));
}

__attribute__((weak)) void dispatch_source_set_registration_handler(void *source, void *block) {
    ON_REAL_TIME(real_dispatch_source_set_registration_handler()(source, block));
}

__attribute__((weak)) void dispatch_after(dispatch_time_t when, void *queue, void *block) {
    escape();
    when = real_date(when);
    ON_REAL_TIME(real_dispatch_after()(when, queue, block));
}

__attribute__((weak)) void dispatch_after_f(dispatch_time_t when, void *queue, void *context, void (*work)(void *)) {
    escape();
    when = real_date(when);
    ON_REAL_TIME(real_dispatch_after_f()(when, queue, context, work));
}

__attribute__((weak)) void dispatch_source_set_timer(void *source, dispatch_time_t start, uint64_t interval, uint64_t leeway) {
    start = real_date(start);
    ON_REAL_TIME(real_dispatch_source_set_timer()(source, start, interval, leeway));
}
