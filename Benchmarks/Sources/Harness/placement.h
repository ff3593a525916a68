// Round trips between a thread and the loop, and the processors on which the two ran.
#pragma once

// Notes the placement. Called on the loop's thread, for each round trip.
void note_placement(void);
// Measures round trips on the other thread, as many as the workload's size after 1,000 to warm up; then stops the loop.
void measure_round_trips(void (*round_trip)(void));
void post_stop(void);
