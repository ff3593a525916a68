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

/// Makes the order of new hash tables follow from their contents and the seeds. Existing tables stay as they are.
void rlk_make_hashing_repeatable(void);

/// The environment variable from which a process takes its seeds as it starts: two numbers in hexadecimal digits.
#define RLK_HASHING_VARIABLE "RUNLOOPKIT_HASHING"

#endif
