#define _GNU_SOURCE

#include "futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "real.h"
#include "times.h"

// Words at which the kernel lets threads wait: those of Swift's `Mutex` and lazy values, and of Dispatch's queues,
// groups and locks. A thread calls this from destructors of its own values, when a sanitizer has released it.
#pragma clang attribute push(__attribute__((disable_sanitizer_instrumentation)), apply_to = function)

REAL(long, syscall, long, long, long, long, long, long, long)

// In newer headers.
enum { lock_pi2 = 13 };

static long fail(int error) {
    errno = error;
    return -1;
}

static uint32_t load(uint32_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }

static int replace(uint32_t *word, uint32_t expected, uint32_t value) {
    return __atomic_compare_exchange_n(word, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// MARK: Waits

/// Finds the moment at which a call is to end; FUTEX_WAIT has the time from now on.
static int find_end(int operation, const struct timespec *time, struct rlk_wait_limit *limit) {
    int command = operation & FUTEX_CMD_MASK, is_wall = operation & FUTEX_CLOCK_REALTIME || command == FUTEX_LOCK_PI;
    if (!find_limit(is_wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, time, limit)) return 0;
    if (command != FUTEX_WAIT) return 1;
    int64_t now = rlk_simulated_calls.time(limit->clock);
    limit->time = limit->time > INT64_MAX - now ? INT64_MAX : limit->time + now;
    return 1;
}

static long wait_at(uint32_t *word, int operation, uint32_t value, const struct timespec *time, uint32_t bits) {
    struct rlk_wait_limit limit;
    if ((time && !find_end(operation, time, &limit)) || bits == 0) return fail(EINVAL);
    if (load(word) != value) return fail(EAGAIN);
    rlk_simulated_calls.begin_wait(word, bits);
    // A thread outside may have changed it meanwhile.
    if (load(word) != value) {
        rlk_simulated_calls.call_off_wait();
        return fail(EAGAIN);
    }
    if (!time) {
        rlk_simulated_calls.wait(rlk_awaits_futex);
    } else if (!rlk_simulated_calls.wait_until(limit.clock, limit.time)) {
        return fail(ETIMEDOUT);
    }
    return 0;
}

/// Wakes at most `most` threads: first waiting threads of a simulation, then others.
static long wake_at(uint32_t *word, int operation, int most, uint32_t bits) {
    int woken = most > 0 ? signal_simulated(word, bits, most) : 0;
    if (woken > 0 && woken == most) return woken;
    long others = real_syscall()(SYS_futex, (long)word, operation, most - woken, 0, 0, bits);
    return others < 0 ? others : woken + others;
}

// MARK: Locks with an owner

/// Makes the kernel call in the name of the caller, whose number is in the word.
static long call_as_owner(uint32_t *word, int operation, const struct timespec *time) {
    if (!rlk_is_carried()) return real_syscall()(SYS_futex, (long)word, operation, 0, (long)time, 0, 0);
    long result = rlk_call_on_own_thread(SYS_futex, (long)word, operation, 0, (long)time);
    return result < 0 ? fail(-result) : result;
}

static int find_holder(const void *word) { return load((uint32_t *)word) & FUTEX_TID_MASK; }

static long lock_at(uint32_t *word, int operation, const struct timespec *time) {
    struct rlk_wait_limit limit;
    const struct rlk_wait_limit *end = time && rlk_is_simulated() ? &limit : NULL;
    if (end && !find_end(operation, time, &limit)) return fail(EINVAL);
    uint32_t own = rlk_own_number(), others = 0;
    for (;;) {
        uint32_t value = load(word);
        if ((value & FUTEX_TID_MASK) == own) return fail(EDEADLK);
        if (value == 0) {
            if (replace(word, 0, own | others)) return 0;
            continue;
        }
        // With this bit, the holder calls the kernel to give the lock back.
        if (!(value & FUTEX_WAITERS) && !replace(word, value, value | FUTEX_WAITERS)) continue;
        switch (rlk_simulated_calls.wait_for_lock(word, ~0u, find_holder, end)) {
            case rlk_lock_limit_passed: return fail(ETIMEDOUT);
            case rlk_lock_was_released:
                // More threads may rest until this one gives the lock back.
                others = FUTEX_WAITERS;
                continue;
            case rlk_lock_is_outside: break;
        }
        long result = call_as_owner(word, operation, end ? NULL : time);
        if (result == 0) __atomic_or_fetch(word, others, __ATOMIC_SEQ_CST);
        return result;
    }
}

static long unlock_at(uint32_t *word, int operation) {
    long result = call_as_owner(word, operation, NULL);
    if (result == 0) signal_simulated(word, ~0u, 1);
    return result;
}

// MARK: The call

long rlk_futex(uint32_t *word, int operation, uint32_t value, const struct timespec *time, uint32_t *word2, uint32_t value3) {
    switch (operation & FUTEX_CMD_MASK) {
        case FUTEX_WAKE: return wake_at(word, operation, value, FUTEX_BITSET_MATCH_ANY);
        case FUTEX_WAKE_BITSET: return wake_at(word, operation, value, value3);
        case FUTEX_WAIT:
            if (rlk_is_simulated()) return wait_at(word, operation, value, time, FUTEX_BITSET_MATCH_ANY);
            break;
        case FUTEX_WAIT_BITSET:
            if (rlk_is_simulated()) return wait_at(word, operation, value, time, value3);
            break;
        case FUTEX_LOCK_PI:
        case lock_pi2:
            if (rlk_is_in_simulation()) return lock_at(word, operation, time);
            if (rlk_is_carried()) return call_as_owner(word, operation, time);
            break;
        case FUTEX_UNLOCK_PI:
            if (rlk_is_in_simulation() || rlk_is_carried()) return unlock_at(word, operation);
            break;
        case FUTEX_TRYLOCK_PI:
            if (rlk_is_carried()) return call_as_owner(word, operation, NULL);
            break;
    }
    // Some operations have a number in place of a time, which is passed on as it is.
    return real_syscall()(SYS_futex, (long)word, operation, value, (long)time, (long)word2, value3);
}

#pragma clang attribute pop
