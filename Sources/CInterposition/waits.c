#define _GNU_SOURCE

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>

#include "real.h"
#include "times.h"

// Conditions and semaphores. A thread calls some of these from destructors of its own values, when a sanitizer has
// released it.
#pragma clang attribute push(__attribute__((disable_sanitizer_instrumentation)), apply_to = function)

REAL(int, pthread_cond_wait, pthread_cond_t *, pthread_mutex_t *)
REAL(int, pthread_cond_timedwait, pthread_cond_t *, pthread_mutex_t *, const struct timespec *)
REAL(int, pthread_cond_clockwait, pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *)
REAL(int, pthread_cond_signal, pthread_cond_t *)
REAL(int, pthread_cond_broadcast, pthread_cond_t *)
REAL(int, sem_wait, sem_t *)
REAL(int, sem_timedwait, sem_t *, const struct timespec *)
REAL(int, sem_clockwait, sem_t *, clockid_t, const struct timespec *)
REAL(int, sem_post, sem_t *)

static int begin_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    // A thread outside may signal as soon as the mutex is free.
    rlk_simulated_calls.begin_wait(condition, ~0u);
    int status = pthread_mutex_unlock(mutex);
    if (status != 0) rlk_simulated_calls.call_off_wait();
    return status;
}

int pthread_cond_wait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex) {
    if (!rlk_is_simulated()) return real_pthread_cond_wait()(condition, mutex);
    int status = begin_wait(condition, mutex);
    if (status != 0) return status;
    rlk_simulated_calls.wait(rlk_awaits_condition);
    return pthread_mutex_lock(mutex);
}

static int wait_simulated(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t id, const struct timespec *end) {
    struct rlk_wait_limit limit;
    if (!find_limit(id, end, &limit)) return EINVAL;
    int status = begin_wait(condition, mutex);
    if (status != 0) return status;
    int was_signalled = rlk_simulated_calls.wait_until(limit.clock, limit.time);
    status = pthread_mutex_lock(mutex);
    return status != 0 ? status : was_signalled ? 0 : ETIMEDOUT;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, const struct timespec *restrict end) {
    if (!rlk_is_simulated()) return real_pthread_cond_timedwait()(condition, mutex, end);
    // The place where the library keeps the clock of a condition.
    clockid_t clock = condition->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    return wait_simulated(condition, mutex, clock, end);
}

int pthread_cond_clockwait(
    pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock, const struct timespec *restrict end) {
    if (!rlk_is_simulated()) return real_pthread_cond_clockwait()(condition, mutex, clock, end);
    return wait_simulated(condition, mutex, clock, end);
}

int pthread_cond_signal(pthread_cond_t *condition) {
    signal_simulated(condition, ~0u, 1);
    return real_pthread_cond_signal()(condition);
}

int pthread_cond_broadcast(pthread_cond_t *condition) {
    signal_simulated(condition, ~0u, INT_MAX);
    return real_pthread_cond_broadcast()(condition);
}

/// Takes the semaphore if it is free, and otherwise begins a wait.
static int take_or_begin_wait(sem_t *semaphore) {
    if (sem_trywait(semaphore) == 0) return 1;
    rlk_simulated_calls.begin_wait(semaphore, ~0u);
    // A thread outside may have posted it meanwhile.
    if (sem_trywait(semaphore) != 0) return 0;
    rlk_simulated_calls.call_off_wait();
    return 1;
}

static int wait_for_semaphore(sem_t *semaphore, clockid_t id, const struct timespec *end) {
    struct rlk_wait_limit limit;
    if (sem_trywait(semaphore) == 0) return 0;
    if (!find_limit(id, end, &limit)) {
        errno = EINVAL;
        return -1;
    }
    while (!take_or_begin_wait(semaphore)) {
        if (rlk_simulated_calls.wait_until(limit.clock, limit.time)) continue;
        if (sem_trywait(semaphore) == 0) return 0;
        errno = ETIMEDOUT;
        return -1;
    }
    return 0;
}

int sem_wait(sem_t *semaphore) {
    if (!rlk_is_simulated()) return real_sem_wait()(semaphore);
    while (!take_or_begin_wait(semaphore)) rlk_simulated_calls.wait(rlk_awaits_semaphore);
    return 0;
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict end) {
    if (!rlk_is_simulated()) return real_sem_timedwait()(semaphore, end);
    return wait_for_semaphore(semaphore, CLOCK_REALTIME, end);
}

int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict end) {
    if (!rlk_is_simulated()) return real_sem_clockwait()(semaphore, clock, end);
    return wait_for_semaphore(semaphore, clock, end);
}

int sem_post(sem_t *semaphore) {
    int status = real_sem_post()(semaphore);
    signal_simulated(semaphore, ~0u, 1);
    return status;
}

#pragma clang attribute pop
