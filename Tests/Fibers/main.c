// Threads that hand over at random, on one thread of the system: each must see its own thread-local memory, registers and
// numbers all the time, until it leaves or is stopped. `fiber-checks` compiles it for each processor that this machine can run.
#undef NDEBUG
#define _GNU_SOURCE

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fibers.h"

enum { count = 6, turns = 20000, stopped = 3, stop_after = 3000 };

static struct rlk_fiber *resident, *fibers[count];
static pthread_t threads[count];
static int lives[count];
static uint32_t seed = 1;
static long hand_overs;

static _Thread_local int kept_number;
static _Thread_local char kept_text[32];

// A function of Swift's runtime, which these programs do without.
uint64_t swift_task_getJobTaskId(void *job) { return 0; }

int rlk_start_thread(pthread_t *thread, void *(*run)(void *), void *context);

static struct rlk_fiber *anybody(void) {
    seed = seed * 1103515245 + 12345;
    int index = (int)(seed >> 16) % (count + 1);
    hand_overs++;
    return index < count && lives[index] ? fibers[index] : resident;
}

/// Keeps its intermediate results in registers while others run.
static double compute(double sum, int index) { return sum * 0.5 + sin(index * 1.5) + index; }

static void *run(void *context) {
    int index = (int)(intptr_t)context;
    char text[32];
    snprintf(text, sizeof text, "fiber %d", index);
    strcpy(kept_text, text);
    int number = gettid();
    if (rlk_begin_fiber(fibers[index])) return NULL;
    pthread_t self = pthread_self();
    double sum = 0, expected = 0;
    for (int turn = 0; turn < turns; turn++) {
        assert(rlk_is_carried() && rlk_fiber_number() == number && rlk_carrier_number() == getpid());
        // The kernel's own opinion differs.
        if (turn % 1000 == 0) assert(rlk_call_on_own_thread(SYS_gettid, 0, 0, 0, 0) == number && gettid() == getpid());
        kept_number = turn;
        errno = 100 + index;
        sum = compute(sum, index);
        if (rlk_pass_turn(fibers[index], anybody())) {
            assert(index == stopped && !rlk_is_carried() && pthread_equal(self, pthread_self()));
            return NULL;
        }
        assert(errno == 100 + index);
        assert(kept_number == turn && strcmp(kept_text, text) == 0);
        assert(pthread_equal(self, pthread_self()) && pthread_equal(self, threads[index]));
    }
    for (int turn = 0; turn < turns; turn++) expected = compute(expected, index);
    assert(sum == expected);
    lives[index] = 0;
    // The first gives the turn to none, and later, from outside, back to the resident.
    rlk_leave_carrier(fibers[index], index == 0 ? NULL : anybody());
    assert(!rlk_is_carried() && kept_number == turns - 1 && pthread_equal(self, pthread_self()));
    if (index == 0) {
        usleep(10000);
        rlk_give_turn(resident);
    }
    return NULL;
}

int main(void) {
    resident = rlk_make_carrier();
    kept_number = -1;
    for (int index = 0; index < count; index++) {
        fibers[index] = rlk_make_fiber(resident);
        lives[index] = 1;
    }
    for (intptr_t index = 0; index < count; index++) assert(rlk_start_thread(&threads[index], run, (void *)index) == 0);
    int passes = 0;
    for (int alive = 1; alive;) {
        rlk_pass_turn(resident, anybody());
        assert(kept_number == -1 && !rlk_is_carried());
        if (++passes == stop_after) {
            lives[stopped] = 0;
            rlk_stop_fiber(fibers[stopped], 1);
        }
        alive = 0;
        for (int index = 0; index < count; index++) alive |= lives[index];
    }
    for (int index = 0; index < count; index++) {
        pthread_join(threads[index], NULL);
        rlk_free_fiber(fibers[index]);
    }
    rlk_free_fiber(resident);
    printf("passed %ld hand-overs\n", hand_overs);
}
