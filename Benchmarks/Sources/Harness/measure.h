// Clocks, random numbers and statistics that the workloads share.
#pragma once
#include "measuring.h"
#include "peer.h"

extern Peer *peer;

// Returns the longest time that a workload may take.
uint64_t budget_ns(void);

// Returns the value at a fraction of the sorted values; sorts them in place.
double percentile(int64_t *values, size_t count, double fraction);

void *zeroed(size_t bytes);

// The inputs, the same for every peer and touched before the timing begins: delays in [low, high) ns, a permutation,
// and places for the handles.
extern size_t size;
extern uint64_t *delays;
extern uint32_t *permutation;
extern Handle *handles;
void make_inputs(uint64_t low, uint64_t high);
void seed_random(uint64_t seed);
uint64_t random_bits(void);

void on_loop(Task task, void *argument);
void sync_time(void);

// Places the calling thread, once; see `place_other_thread`.
void place_loop_thread(void);

// The name of the workload.
extern const char *workload;

// The workloads. `size` is the number of measured items; each workload states the meaning of `count`.
void churn(uint64_t unused);
void churn_embedded(uint64_t unused);
void churn_common(uint64_t unused);
void rearm(uint64_t rearms);
void fire(uint64_t unused);
void periodic(uint64_t milliseconds);
void virtual_time(uint64_t milliseconds);
void ping(uint64_t unused);
void post_all(uint64_t producers);
void descriptor_ping(uint64_t unused);
void descriptor_chain(uint64_t unused);
void descriptors_out_of_mode(uint64_t passes);
void idle_pass(uint64_t unused);
void mode_switch(uint64_t passes);
void tasks(uint64_t unused);

// Called when a timer of the workload fires.
extern void (*when_fired)(size_t i);
// `post` for peers that only have `wake`.
void post_to_queue(Task task, void *argument);
