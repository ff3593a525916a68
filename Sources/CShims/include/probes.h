#ifndef CSHIMS_PROBES_H
#define CSHIMS_PROBES_H

#include <stdint.h>

// Probes for bpftrace and SystemTap in loops with a flight recorder. They are compiled in where `sys/sdt.h` exists, and
// cost nothing elsewhere. The kernel keeps the number of each probe's watchers in memory, and its arguments are made
// only for watchers.

#if __has_include(<sys/sdt.h>)
#define RLK_PROBE(name, ...) \
    extern unsigned short runloopkit_##name##_semaphore; \
    static inline int rlk_watches_##name(void) { \
        return *(volatile unsigned short *)&runloopkit_##name##_semaphore != 0; \
    } \
    void rlk_probe_##name(__VA_ARGS__)
#else
#define RLK_PROBE(name, ...) \
    static inline int rlk_watches_##name(void) { return 0; } \
    static inline void rlk_probe_##name(__VA_ARGS__) {}
#endif

/// A handler is about to be called: its kind, its name, which may be empty, the place where it was made, and the number
/// of its task or of its cause.
RLK_PROBE(call__begin, const char *kind, const char *name, const char *file, uint32_t line, uint64_t number);
/// The handler has returned, after `duration` nanoseconds.
RLK_PROBE(call__end, int64_t duration);
/// A timer fires, `lateness` nanoseconds after its date.
RLK_PROBE(timer__fire, const char *kind, const char *name, const char *file, uint32_t line, int64_t lateness);
/// A loop falls asleep, until a time of its clock in nanoseconds at the latest.
RLK_PROBE(sleep__begin, int64_t until);
/// The loop has woken up, after `slept` nanoseconds: the kind and the name of the source or of the thread that woke it.
/// The kind is `date`, `descriptor`, `thread` or `other`.
RLK_PROBE(sleep__end, int64_t slept, const char *kind, const char *name);
/// A call is posted, requested or armed, or a task woken: its handler, as in `call__begin`.
RLK_PROBE(post, const char *kind, const char *name, const char *file, uint32_t line, uint64_t number);

#undef RLK_PROBE

#endif
