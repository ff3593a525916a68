#define _GNU_SOURCE
#include "crecording.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The seeds of Swift's hashing. Programs that are compiled against the standard library refer to this variable, so that its
// name and layout are part of its binary interface.
extern struct {
    uint64_t seed0;
    uint64_t seed1;
    bool deterministic;
} _swift_stdlib_Hashing_parameters;

static int are_given;

struct rlk_hashing rlk_get_hashing(void) {
    struct rlk_hashing hashing = {
        _swift_stdlib_Hashing_parameters.seed0, _swift_stdlib_Hashing_parameters.seed1, are_given};
    return hashing;
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

void rlk_execute_again(uint64_t seed0, uint64_t seed1) {
    FILE *file = fopen("/proc/self/cmdline", "re");
    if (!file) return;
    char *text = NULL, **arguments = NULL;
    size_t size = 0, room = 0, count = 0;
    for (;; size += fread(text + size, 1, room - size, file)) {
        if (size < room) break;
        char *more = realloc(text, room = 2 * room + 4096);
        if (!more) goto failed;
        text = more;
    }
    for (size_t place = 0; place < size; place += strlen(text + place) + 1) count++;
    arguments = calloc(count + 1, sizeof *arguments);
    if (!arguments) goto failed;
    for (size_t place = 0, index = 0; place < size; place += strlen(text + place) + 1) arguments[index++] = text + place;
    char seeds[64];
    snprintf(seeds, sizeof seeds, "%llx,%llx", (unsigned long long)seed0, (unsigned long long)seed1);
    if (setenv(RLK_HASHING_VARIABLE, seeds, 1) == 0) execv("/proc/self/exe", arguments);
failed:;
    int reason = errno;
    fclose(file);
    free(text);
    free(arguments);
    errno = reason;
}
