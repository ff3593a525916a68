// Round trips between a thread and the loop, and where the two ran.
#pragma once

// On the loop's thread, for each round trip.
void note_placement(void);
// On the other thread: as many as the workload's size after 1,000 to warm up; then stops the loop.
void measure_round_trips(void (*round_trip)(void));
void post_stop(void);
