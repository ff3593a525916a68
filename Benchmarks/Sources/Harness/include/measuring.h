// What workloads in Swift measure with, too.
#pragma once
#include <stddef.h>
#include <stdint.h>

uint64_t now_ns(void);
// User and system time of all threads.
uint64_t cpu_ns(void);
uint64_t context_switches(void);
uint64_t resident_bytes(void);

// Sorts the values in place.
double median(int64_t *values, size_t count);
// A workload that was given up, or whose conditions did not hold.
void give_up(const char *why);

// Where threads run, from the variable BENCH_PLACEMENT: "cross" puts the loop on CPU 0 and the others on CPU 1, "both"
// leaves the others on either, "same" puts all on CPU 0.
void place_other_thread(void);

// Ends the peer's `run`. On the loop's thread.
void stop_loop(void);
