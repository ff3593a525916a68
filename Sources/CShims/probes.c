#include "probes.h"

#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

// The kernel counts in the semaphore who watches.
#define PROBE(name, parameters, count, ...) \
    unsigned short runloopkit_##name##_semaphore __attribute__((section(".probes"))); \
    void rlk_probe_##name parameters { STAP_PROBE##count(runloopkit, name, __VA_ARGS__); }

PROBE(call__begin, (const char *kind, const char *name, const char *file, uint32_t line, uint64_t number),
      5, kind, name, file, line, number)
PROBE(call__end, (int64_t duration), 1, duration)
PROBE(timer__fire, (const char *kind, const char *name, const char *file, uint32_t line, int64_t lateness),
      5, kind, name, file, line, lateness)
PROBE(sleep__begin, (int64_t until), 1, until)
PROBE(sleep__end, (int64_t slept, const char *kind, const char *name), 3, slept, kind, name)
PROBE(post, (const char *kind, const char *name, const char *file, uint32_t line, uint64_t number),
      5, kind, name, file, line, number)
#endif
