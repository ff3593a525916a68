#include "probes.h"

#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

// The kernel counts who watches.
#define WATCHED(name) unsigned short runloopkit_##name##_semaphore __attribute__((section(".probes")))

WATCHED(call__begin);
WATCHED(call__end);
WATCHED(timer__fire);
WATCHED(sleep__begin);
WATCHED(sleep__end);
WATCHED(post);

void rlk_probe_call__begin(const char *kind, const char *name, const char *file, uint32_t line, uint64_t number) {
    STAP_PROBE5(runloopkit, call__begin, kind, name, file, line, number);
}

void rlk_probe_call__end(int64_t duration) { STAP_PROBE1(runloopkit, call__end, duration); }

void rlk_probe_timer__fire(const char *kind, const char *name, const char *file, uint32_t line, int64_t lateness) {
    STAP_PROBE5(runloopkit, timer__fire, kind, name, file, line, lateness);
}

void rlk_probe_sleep__begin(int64_t until) { STAP_PROBE1(runloopkit, sleep__begin, until); }

void rlk_probe_sleep__end(int64_t slept, const char *kind, const char *name) {
    STAP_PROBE3(runloopkit, sleep__end, slept, kind, name);
}

void rlk_probe_post(const char *kind, const char *name, const char *file, uint32_t line, uint64_t number) {
    STAP_PROBE5(runloopkit, post, kind, name, file, line, number);
}
#endif
