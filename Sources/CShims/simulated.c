#include "simulated.h"

#include <stdatomic.h>

struct rlk_simulated_calls rlk_simulated_calls;
_Atomic int rlk_simulated_waits;
static int has_interposition;

void rlk_answer_calls(struct rlk_simulated_calls calls) { rlk_simulated_calls = calls; }

int rlk_has_interposition(void) { return has_interposition; }
void rlk_note_interposition(void) { has_interposition = 1; }

static _Thread_local int is_simulated __attribute__((tls_model("initial-exec")));

int rlk_is_simulated(void) { return is_simulated; }

int rlk_set_simulated(int value) {
    int former = is_simulated;
    is_simulated = value;
    return former;
}

void rlk_count_simulated_wait(int change) { atomic_fetch_add(&rlk_simulated_waits, change); }
