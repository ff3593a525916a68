// The measuring functions, which workloads in Swift use, too.
#pragma once
#include <stddef.h>
#include <stdint.h>

uint64_t now_ns(void);
// Returns the user and system time of all threads.
uint64_t cpu_ns(void);
uint64_t context_switches(void);
uint64_t resident_bytes(void);

// Returns the median; sorts the values in place.
double median(int64_t *values, size_t count);
// Gives up a workload, or one whose conditions did not hold.
void give_up(const char *why);

// Places a thread by the variable BENCH_PLACEMENT: "cross" puts the loop on CPU 0 and the others on CPU 1, "both"
// leaves the others on either, "same" puts all on CPU 0.
void place_other_thread(void);

// Ends the peer's `run`. Called on the loop's thread.
void stop_loop(void);
