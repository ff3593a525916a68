#include "simulated.h"

#include <stdatomic.h>

struct rlk_simulated_calls rlk_simulated_calls;
_Atomic int rlk_simulated_waits;

void rlk_simulated_random(void *bytes, size_t count) { rlk_simulated_calls.random(bytes, count); }

void rlk_answer_calls(struct rlk_simulated_calls calls) { rlk_simulated_calls = calls; }

// The flag is set and read on threads of one simulation, of which one runs at a time.
static _Thread_local const int *simulated_flag __attribute__((tls_model("initial-exec")));

int rlk_is_simulated(void) { return simulated_flag && *simulated_flag; }

const int *rlk_set_simulated(const int *flag) {
    const int *former = simulated_flag;
    simulated_flag = flag;
    return former;
}

void rlk_count_simulated_wait(int change) { atomic_fetch_add(&rlk_simulated_waits, change); }
