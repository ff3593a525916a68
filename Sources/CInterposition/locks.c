#define _GNU_SOURCE

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "real.h"
#include "times.h"

// A thread of a simulation that waits for a lock of another one would stop all of them, because they run on one thread
// of the system. So it tries. If another thread of its simulation has the lock, it rests until the lock is given back,
// and tries again: meanwhile the others continue, and so does virtual time. It waits for threads outside as always.
//
// A thread calls some of these from destructors of its own values, when a sanitizer has released it.
#pragma clang attribute push(__attribute__((disable_sanitizer_instrumentation)), apply_to = function)

REAL(int, pthread_mutex_lock, pthread_mutex_t *)
REAL(int, pthread_mutex_trylock, pthread_mutex_t *)
REAL(int, pthread_mutex_timedlock, pthread_mutex_t *, const struct timespec *)
REAL(int, pthread_mutex_clocklock, pthread_mutex_t *, clockid_t, const struct timespec *)
REAL(int, pthread_mutex_unlock, pthread_mutex_t *)
REAL(int, pthread_rwlock_rdlock, pthread_rwlock_t *)
REAL(int, pthread_rwlock_tryrdlock, pthread_rwlock_t *)
REAL(int, pthread_rwlock_timedrdlock, pthread_rwlock_t *, const struct timespec *)
REAL(int, pthread_rwlock_clockrdlock, pthread_rwlock_t *, clockid_t, const struct timespec *)
REAL(int, pthread_rwlock_wrlock, pthread_rwlock_t *)
REAL(int, pthread_rwlock_trywrlock, pthread_rwlock_t *)
REAL(int, pthread_rwlock_timedwrlock, pthread_rwlock_t *, const struct timespec *)
REAL(int, pthread_rwlock_clockwrlock, pthread_rwlock_t *, clockid_t, const struct timespec *)
REAL(int, pthread_rwlock_unlock, pthread_rwlock_t *)
REAL(int, pthread_once, pthread_once_t *, void (*)(void))
REAL(int, pthread_join, pthread_t, void **)
REAL(long, syscall, long, long, long, long, long, long, long)

/// The number of the library's own locks that the thread of the system holds. No simulated thread rests with one: the
/// others would wait for it on this very thread.
static __thread int own_locks;

static int lock_own(pthread_mutex_t *mutex) {
    int status = real_pthread_mutex_lock()(mutex);
    own_locks += 1;
    return status;
}

static int unlock_own(pthread_mutex_t *mutex) {
    own_locks -= 1;
    return real_pthread_mutex_unlock()(mutex);
}

/// The library's own locks go around these functions, which use them.
__attribute__((constructor(101))) static void find_own_locks(void) {
    // If the C library comes before these functions, the library's own locks are the C library's already.
    if (!__interceptor_pthread_mutex_lock && !dlsym(RTLD_NEXT, "pthread_mutex_lock")) return;
    rlk_lock_mutex = lock_own;
    rlk_unlock_mutex = unlock_own;
}

/// The number by which locks know their owner. The C library has it from the thread's beginning, and others ask for it.
pid_t gettid(void) {
    int number = rlk_fiber_number();
    return number ? number : real_syscall()(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

enum { is_outside = -1 };
/// The bits of waits: the waits of readers end together.
enum { reads = 1, writes = 2 };

/// Takes a lock, as soon as no other thread of the simulation has it. With one of the library's own locks, and while it
/// looks for the holder of another lock, the thread waits as always: Swift's runtime takes locks wherever it makes a type.
///
/// - `bits` are `reads` or `writes`;
/// - `attempt` returns `EBUSY` if the lock is not free;
/// - `find_holder` returns the number of a thread that has it, or 0 if that cannot be one of the simulation.
static int take(
    void *lock, uint32_t bits, int (*attempt)(void *), rlk_find_holder *find_holder, const struct rlk_wait_limit *limit) {
    int status, has_waited = 0;
    while ((status = attempt(lock)) == EBUSY) {
        if (own_locks > 0 || rlk_look_for_holder(1)) return is_outside;
        enum rlk_lock_wait end = rlk_simulated_calls.wait_for_lock(lock, bits, find_holder, limit);
        rlk_look_for_holder(0);
        switch (end) {
            case rlk_lock_is_outside: return is_outside;
            case rlk_lock_limit_passed: return ETIMEDOUT;
            case rlk_lock_was_released: has_waited = 1; break;
        }
    }
    if (status == 0 && has_waited && bits == reads) signal_simulated(lock, reads, INT_MAX);
    return status;
}

static void tell(const void *lock, int most) {
    if (rlk_is_in_simulation()) signal_simulated(lock, ~0u, most);
}

// MARK: Mutexes

static int try_mutex(void *mutex) { return real_pthread_mutex_trylock()(mutex); }

static int find_holder_of_mutex(const void *mutex) { return ((const pthread_mutex_t *)mutex)->__data.__owner; }

static int take_mutex(pthread_mutex_t *mutex, const struct rlk_wait_limit *limit) {
    // The library tells an owner of its mistake.
    int is_checked = (mutex->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK_NP;
    if (is_checked && find_holder_of_mutex(mutex) == rlk_own_number()) return is_outside;
    return take(mutex, writes, try_mutex, find_holder_of_mutex, limit);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    int status = rlk_is_in_simulation() ? take_mutex(mutex, NULL) : is_outside;
    return status == is_outside ? real_pthread_mutex_lock()(mutex) : status;
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t id, const struct timespec *end) {
    struct rlk_wait_limit limit;
    if (!rlk_is_simulated() || !find_limit(id, end, &limit)) return real_pthread_mutex_clocklock()(mutex, id, end);
    int status = take_mutex(mutex, &limit);
    return status == is_outside ? real_pthread_mutex_lock()(mutex) : status;
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict end) {
    if (!rlk_is_simulated()) return real_pthread_mutex_timedlock()(mutex, end);
    return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, end);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    int is_kept = (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP && mutex->__data.__count > 1;
    int status = real_pthread_mutex_unlock()(mutex);
    if (!is_kept) tell(mutex, 1);
    return status;
}

// MARK: Locks for reading and writing

/// The library counts readers without their numbers.
static int noted(int status, void *lock) {
    if (status == 0 && rlk_is_in_simulation()) rlk_note_lock(lock);
    return status;
}

static int try_reading(void *lock) { return noted(real_pthread_rwlock_tryrdlock()(lock), lock); }

static int try_writing(void *lock) { return real_pthread_rwlock_trywrlock()(lock); }

static int find_writer(const void *lock) { return ((const pthread_rwlock_t *)lock)->__data.__cur_writer; }

static int find_writer_or_reader(const void *lock) {
    int writer = find_writer(lock);
    return writer ? writer : rlk_find_lock(lock);
}

static int take_to_read(pthread_rwlock_t *lock, const struct rlk_wait_limit *limit) {
    // The library tells a writer of its mistake.
    return find_writer(lock) == rlk_own_number() ? is_outside : take(lock, reads, try_reading, find_writer, limit);
}

static int take_to_write(pthread_rwlock_t *lock, const struct rlk_wait_limit *limit) {
    return find_writer(lock) == rlk_own_number() ? is_outside : take(lock, writes, try_writing, find_writer_or_reader, limit);
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock) { return try_reading(lock); }

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    int status = rlk_is_in_simulation() ? take_to_read(lock, NULL) : is_outside;
    return status == is_outside ? noted(real_pthread_rwlock_rdlock()(lock), lock) : status;
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t *restrict lock, clockid_t id, const struct timespec *restrict end) {
    struct rlk_wait_limit limit;
    if (!rlk_is_simulated() || !find_limit(id, end, &limit))
        return noted(real_pthread_rwlock_clockrdlock()(lock, id, end), lock);
    int status = take_to_read(lock, &limit);
    return status == is_outside ? noted(real_pthread_rwlock_rdlock()(lock), lock) : status;
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict lock, const struct timespec *restrict end) {
    if (!rlk_is_simulated()) return noted(real_pthread_rwlock_timedrdlock()(lock, end), lock);
    return pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, end);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    int status = rlk_is_in_simulation() ? take_to_write(lock, NULL) : is_outside;
    return status == is_outside ? real_pthread_rwlock_wrlock()(lock) : status;
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t *restrict lock, clockid_t id, const struct timespec *restrict end) {
    struct rlk_wait_limit limit;
    if (!rlk_is_simulated() || !find_limit(id, end, &limit)) return real_pthread_rwlock_clockwrlock()(lock, id, end);
    int status = take_to_write(lock, &limit);
    return status == is_outside ? real_pthread_rwlock_wrlock()(lock) : status;
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict lock, const struct timespec *restrict end) {
    if (!rlk_is_simulated()) return real_pthread_rwlock_timedwrlock()(lock, end);
    return pthread_rwlock_clockwrlock(lock, CLOCK_REALTIME, end);
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    if (!rlk_is_in_simulation()) return real_pthread_rwlock_unlock()(lock);
    rlk_forget_lock(lock);
    int status = real_pthread_rwlock_unlock()(lock);
    // Others may still read.
    if (!rlk_find_lock(lock)) tell(lock, 1);
    return status;
}

// MARK: Initializations

int pthread_once(pthread_once_t *control, void (*initialize)(void)) {
    const int is_done = 2;
    if (!rlk_is_in_simulation() || own_locks > 0 || __atomic_load_n(control, __ATOMIC_ACQUIRE) & is_done)
        return real_pthread_once()(control, initialize);
    while (rlk_find_lock(control))
        if (rlk_simulated_calls.wait_for_lock(control, writes, rlk_find_lock, NULL) == rlk_lock_is_outside) break;
    rlk_note_lock(control);
    int status = real_pthread_once()(control, initialize);
    rlk_forget_lock(control);
    tell(control, INT_MAX);
    return status;
}

// MARK: Ends of threads

int pthread_join(pthread_t thread, void **result) {
    if (rlk_is_in_simulation()) rlk_simulated_calls.join(thread);
    return real_pthread_join()(thread, result);
}

#pragma clang attribute pop
