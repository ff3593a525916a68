#define _GNU_SOURCE
#include "simulated.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

struct rlk_simulated_calls rlk_simulated_calls;
_Atomic int rlk_simulated_waits;

void rlk_simulated_random(void *bytes, size_t count) { rlk_simulated_calls.random(bytes, count); }

void rlk_answer_calls(struct rlk_simulated_calls calls) { rlk_simulated_calls = calls; }

// It is set and read on threads of one simulation, of which one runs at a time.
static _Thread_local unsigned *simulated_answers __attribute__((tls_model("initial-exec")));

// Called on any thread, also when a sanitizer has let go of it.
__attribute__((disable_sanitizer_instrumentation))
int rlk_is_simulated(void) { return simulated_answers && *simulated_answers != rlk_answers_nothing; }

int rlk_is_explored(void) { return simulated_answers && *simulated_answers == rlk_answers_and_explores; }

int rlk_take_step(void) {
    const unsigned many = 100000;
    if (!rlk_is_simulated() || ++simulated_answers[1] < many) return 0;
    simulated_answers[1] = 0;
    return 1;
}

unsigned *rlk_set_simulated(unsigned *answers) {
    unsigned *former = simulated_answers;
    simulated_answers = answers;
    return former;
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
