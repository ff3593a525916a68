// Passes that find nothing to do.
#include "measure.h"

static const uint64_t far = 3600000000000;

void idle_pass(uint64_t unused) {
    (void)unused;
    sync_time();
    peer->add(far, 0);
    for (size_t i = 0; i < 1000; i++) peer->pass();
    int64_t rounds[9];
    for (int round = 0; round < 9; round++) {
        uint64_t begin = now_ns();
        for (size_t i = 0; i < size; i++) peer->pass();
        rounds[round] = (int64_t)((now_ns() - begin) * 1000 / size);
    }
    harness_emit("per_pass", median(rounds, 9) / 1000, "ns");
}

// Makes passes in two modes by turns: one timer in the first, `size` in the second.
void mode_switch(uint64_t passes) {
    peer->add_in_mode(far, 0);
    for (size_t i = 0; i < size; i++) peer->add_in_mode(far + i, 1);
    for (size_t i = 0; i < 1000; i++) peer->pass_in_mode(i % 2);
    int64_t rounds[9];
    for (int round = 0; round < 9; round++) {
        uint64_t begin = now_ns();
        for (uint64_t i = 0; i < passes; i++) peer->pass_in_mode(i % 2);
        rounds[round] = (int64_t)((now_ns() - begin) * 1000 / passes);
    }
    harness_emit("per_switch", median(rounds, 9) / 1000, "ns");
}
