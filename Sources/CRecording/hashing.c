#include "crecording.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

// The seeds of Swift's hashing. Programs that are compiled against the standard library refer to this variable, so that its
// name and layout are part of its binary interface.
extern struct {
    uint64_t seed0;
    uint64_t seed1;
    bool deterministic;
} _swift_stdlib_Hashing_parameters;

static int are_given;

struct rlk_hashing rlk_get_hashing(void) {
    return (struct rlk_hashing){
        _swift_stdlib_Hashing_parameters.seed0, _swift_stdlib_Hashing_parameters.seed1, are_given};
}

void rlk_make_hashing_repeatable(void) { _swift_stdlib_Hashing_parameters.deterministic = true; }

// Before any table has been made.
__attribute__((constructor)) static void take_seeds(void) {
    const char *text = getenv(RLK_HASHING_VARIABLE);
    unsigned long long seed0, seed1;
    if (!text || sscanf(text, "%llx,%llx", &seed0, &seed1) != 2) return;
    _swift_stdlib_Hashing_parameters.seed0 = seed0;
    _swift_stdlib_Hashing_parameters.seed1 = seed1;
    rlk_make_hashing_repeatable();
    are_given = 1;
    unsetenv(RLK_HASHING_VARIABLE);
}
