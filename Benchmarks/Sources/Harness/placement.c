#define _GNU_SOURCE
#include "placement.h"
#include "measure.h"
#include <sched.h>
#include <unistd.h>

static uint64_t on_zero, noted;

void note_placement(void) {
    place_loop_thread();
    noted++;
    on_zero += sched_getcpu() == 0;
}

void measure_round_trips(void (*round_trip)(void)) {
    place_other_thread();
    usleep(20000);
    int64_t *times = zeroed(size * sizeof *times);
    for (size_t i = 0; i < 1000; i++) round_trip();
    uint64_t cpu = cpu_ns();
    for (size_t i = 0; i < size; i++) {
        uint64_t begin = now_ns();
        round_trip();
        times[i] = (int64_t)(now_ns() - begin);
    }
    cpu = cpu_ns() - cpu;
    harness_emit("round_trip", median(times, size), "ns");
    harness_emit("round_trip_p99", percentile(times, size, 0.99), "ns");
    harness_emit("cpu_per_round_trip", (double)cpu / (double)size, "ns");
    if (noted) harness_emit("loop_on_cpu0", 100 * (double)on_zero / (double)noted, "%");
    post_stop();
}
