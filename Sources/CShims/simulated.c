#define _GNU_SOURCE
#include "simulated.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fibers.h"

struct rlk_simulated_calls rlk_simulated_calls;
_Atomic int rlk_simulated_waits;

void rlk_simulated_random(void *bytes, size_t count) { rlk_simulated_calls.random(bytes, count); }

const struct rlk_simulated_calls *rlk_installed_calls(void) { return &rlk_simulated_calls; }

void rlk_answer_calls(struct rlk_simulated_calls calls) { rlk_simulated_calls = calls; }

// Set and read on threads of one simulation, of which one runs at a time.
static _Thread_local unsigned *simulated_answers __attribute__((tls_model("initial-exec")));

// Called on any thread, also when a sanitizer has released it.
__attribute__((disable_sanitizer_instrumentation))
int rlk_is_in_simulation(void) { return simulated_answers != NULL; }

__attribute__((disable_sanitizer_instrumentation))
int rlk_is_simulated(void) { return simulated_answers && *simulated_answers != rlk_answers_nothing; }

int rlk_is_answered_from(const unsigned *answers) { return simulated_answers == answers; }

int rlk_is_explored(void) { return simulated_answers && *simulated_answers == rlk_answers_and_explores; }

/// A lock, and the number of a thread that has it.
struct held {
    const void *lock;
    int number;
};

struct simulation {
    unsigned answers, steps;
    /// Few at a time, and most often the last is the first to go.
    struct held *held;
    size_t count, room;
};

int rlk_take_step(void) {
    const unsigned many = 100000;
    struct simulation *simulation = (struct simulation *)simulated_answers;
    if (!rlk_is_simulated() || ++simulation->steps < many) return 0;
    simulation->steps = 0;
    return 1;
}

unsigned *rlk_set_simulated(unsigned *answers) {
    unsigned *former = simulated_answers;
    simulated_answers = answers;
    return former;
}

unsigned *rlk_make_answers(void) {
    struct simulation *simulation = calloc(1, sizeof *simulation);
    return simulation ? &simulation->answers : NULL;
}

void rlk_free_answers(unsigned *answers) {
    free(((struct simulation *)answers)->held);
    free(answers);
}

int rlk_own_number(void) {
    int number = rlk_fiber_number();
    return number ? number : gettid();
}

void rlk_note_lock(const void *lock) {
    struct simulation *simulation = (struct simulation *)simulated_answers;
    if (simulation->count == simulation->room) {
        size_t room = simulation->room * 2 + 16;
        struct held *held = realloc(simulation->held, room * sizeof *held);
        if (!held) return;
        simulation->held = held, simulation->room = room;
    }
    simulation->held[simulation->count++] = (struct held){lock, rlk_own_number()};
}

void rlk_forget_lock(const void *lock) {
    struct simulation *simulation = (struct simulation *)simulated_answers;
    int number = rlk_own_number();
    for (size_t index = simulation->count; index-- > 0;) {
        struct held *held = &simulation->held[index];
        if (held->lock != lock || held->number != number) continue;
        *held = simulation->held[--simulation->count];
        return;
    }
}

int rlk_find_lock(const void *lock) {
    struct simulation *simulation = (struct simulation *)simulated_answers;
    for (size_t index = 0; simulation && index < simulation->count; index++)
        if (simulation->held[index].lock == lock) return simulation->held[index].number;
    return 0;
}

static _Thread_local int looks_for_holder __attribute__((tls_model("initial-exec")));

// Called on any thread, also when a sanitizer has released it.
__attribute__((disable_sanitizer_instrumentation))
int rlk_look_for_holder(int looks) {
    int looked = looks_for_holder;
    looks_for_holder = looks;
    return looked;
}

void (*rlk_thread_is_simulated)(int is_simulated);

static _Thread_local struct rlk_dispatch own_dispatch, *dispatch;
static _Thread_local char filter;

struct rlk_dispatch *rlk_dispatch_of_thread(void) {
    if (!dispatch) dispatch = &own_dispatch;
    return dispatch;
}

void rlk_set_filter(char new_filter) {
    filter = new_filter;
    rlk_dispatch_of_thread()->filter = filter;
}

void rlk_use_dispatch(struct rlk_dispatch *carrier) {
    dispatch = carrier;
    carrier->filter = filter;
}

void rlk_begin_simulated(unsigned *answers) {
    rlk_set_simulated(answers);
    if (rlk_thread_is_simulated) rlk_thread_is_simulated(answers != NULL);
}

void rlk_wait_really(sem_t *semaphore) {
    unsigned *answers = rlk_set_simulated(NULL);
    while (sem_wait(semaphore) != 0) {}
    rlk_set_simulated(answers);
}

int rlk_wait_at_most(sem_t *semaphore, int64_t nanoseconds) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    nanoseconds += end.tv_nsec;
    end.tv_sec += nanoseconds / 1000000000;
    end.tv_nsec = nanoseconds % 1000000000;
    while (sem_clockwait(semaphore, CLOCK_MONOTONIC, &end) != 0) {
        if (errno != EINTR) return 0;
    }
    return 1;
}

void rlk_count_simulated_wait(int change) { atomic_fetch_add(&rlk_simulated_waits, change); }
