#ifndef CRECORDING_H
#define CRECORDING_H

#include <stdint.h>

/// The seeds of Swift's hashing in this process, and whether it was started with them.
struct rlk_hashing {
    uint64_t seed0;
    uint64_t seed1;
    int is_given;
};

struct rlk_hashing rlk_get_hashing(void);

/// Has tables that are made from now on have the order that follows from their contents and the seeds. Tables that there are
/// stay as they are.
void rlk_make_hashing_repeatable(void);

/// The variable of the environment from which a process takes its seeds as it starts: two numbers in hexadecimal digits.
#define RLK_HASHING_VARIABLE "RUNLOOPKIT_HASHING"

#endif
