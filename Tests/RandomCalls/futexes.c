#include "calls.h"

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

// Words at which threads wait, and calls that wake them or have them wait elsewhere.

enum { word_count = 3, waiter_count = 5 };
static uint32_t words[word_count];

/// A thread that waits when it is told to.
struct waiter {
    sem_t order;
    int operation;
    uint32_t *word, expected, bits;
    struct timespec *limit, time;
    long result;
    int error;
    _Atomic int is_busy, has_ended;
};
static struct waiter waiters[waiter_count];

static long futex(uint32_t *word, int operation, uint32_t value, const void *time, uint32_t *other, uint32_t last) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, time, other, last);
}

static void *serve(void *argument) {
    struct waiter *own = argument;
    for (;;) {
        while (sem_wait(&own->order) != 0);
        own->result = futex(own->word, own->operation, own->expected, own->limit, NULL, own->bits);
        own->error = errno;
        own->has_ended = 1;
    }
    return NULL;
}

static void begin(void) {
    for (int index = 0; index < waiter_count; index++) {
        pthread_t thread;
        sem_init(&waiters[index].order, 0, 0);
        pthread_create(&thread, NULL, serve, &waiters[index]);
    }
}

/// Waits until so many waits have ended, which may take a while on a busy machine, and a little longer.
static void await_ends(long expected) {
    long ended = 0;
    for (int tries = 0; ended < expected && tries < 100; tries++) {
        if (tries > 0) rest(step);
        ended = 0;
        for (int index = 0; index < waiter_count; index++) ended += waiters[index].has_ended;
    }
    rest(step / 2);
}

static int some_bits(void) { return once_in(3) ? -1 : chance(8); }

/// Returns the first waiter from one on that does not wait.
static struct waiter *find_free(int first) {
    for (int index = 0; index < waiter_count; index++) {
        struct waiter *waiter = &waiters[(first + index) % waiter_count];
        if (!waiter->is_busy) return waiter;
    }
    return NULL;
}

static void wait_at_word(void) {
    struct waiter *waiter = find_free(chance(waiter_count));
    int word = chance(word_count), has_limit = once_in(4), has_bits = once_in(2), bits = some_bits(), is_other = once_in(8);
    if (!waiter) return tell("all wait");
    waiter->operation = has_bits ? FUTEX_WAIT_BITSET : FUTEX_WAIT;
    waiter->word = &words[word];
    waiter->expected = words[word] + (uint32_t)is_other;
    waiter->bits = (uint32_t)bits;
    waiter->limit = has_limit ? &waiter->time : NULL;
    waiter->time = steps(1);
    if (has_bits) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        long date = now.tv_sec * 1000000000 + now.tv_nsec + step;
        waiter->time = (struct timespec){date / 1000000000, date % 1000000000};
    }
    tell("%d waits at %d, %d, %d, %x", (int)(waiter - waiters), word, is_other, has_limit, has_bits ? bits : -1);
    waiter->is_busy = 1;
    sem_post(&waiter->order);
    // Those without a limit wait on.
    if (has_limit || is_other || (has_bits && bits == 0)) await_ends(1);
    else rest(step);
}

static void wake(void) {
    int word = chance(word_count), most = once_in(8) ? chance(3) - 1 : chance(4), has_bits = once_in(2), bits = some_bits();
    tell("wake(%d, %d, %x)", word, most, has_bits ? bits : -1);
    await_ends(tell_result(
        futex(&words[word], has_bits ? FUTEX_WAKE_BITSET : FUTEX_WAKE, (uint32_t)most, NULL, NULL, (uint32_t)bits)));
}

static void move(void) {
    int from = chance(word_count), to = chance(word_count), most = once_in(20) ? -1 : chance(3);
    long moved = once_in(20) ? -1 : chance(3);
    int compares = once_in(2), is_other = once_in(5);
    tell("requeue(%d, %d, %ld, %d, %d)", from, most, moved, to, compares ? is_other : -1);
    long result = tell_result(
        futex(&words[from], compares ? FUTEX_CMP_REQUEUE : FUTEX_REQUEUE, (uint32_t)most, (void *)moved, &words[to],
              words[from] + (uint32_t)is_other));
    await_ends(result < most ? result : most);
}

static void wake_with_operation(void) {
    int one = chance(word_count), other = chance(word_count), most = chance(3);
    long most_of_other = chance(3);
    uint32_t operation = (uint32_t)chance(once_in(20) ? 16 : 5) << 28 | (uint32_t)chance(once_in(20) ? 16 : 6) << 24;
    operation |= (uint32_t)(once_in(4) ? chance(4096) : chance(4)) << 12;
    operation |= (uint32_t)(once_in(4) ? chance(4096) : chance(4));
    if (once_in(4)) operation |= 8u << 28;
    tell("wake_op(%d, %d, %ld, %d, %x)", one, most, most_of_other, other, operation);
    long result = tell_result(
        futex(&words[one], FUTEX_WAKE_OP, (uint32_t)most, (void *)most_of_other, &words[other], operation));
    tell(" %x", words[other]);
    await_ends(result);
}

/// Tells of the waits that have ended.
static void tell_ends(void) {
    for (int index = 0; index < waiter_count; index++) {
        struct waiter *waiter = &waiters[index];
        if (!waiter->has_ended) continue;
        waiter->has_ended = waiter->is_busy = 0;
        tell(", %d", index);
        errno = waiter->error;
        tell_result(waiter->result);
    }
}

static void call(void) {
    int number = chance(100);
    if (number < 55) {
        wait_at_word();
    } else {
        if (number < 72) wake();
        else if (number < 84) move();
        else if (number < 94) wake_with_operation();
        else words[chance(word_count)] = (uint32_t)chance(3), tell("set");
    }
    tell_ends();
}

const struct kind futex_kind = {"futexes", begin, call};
