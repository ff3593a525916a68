#include <cshims.h>
#include <stdatomic.h>
#include <time.h>

#define BILLION 1000000000LL

static inline int64_t nanoseconds(const struct timespec *time) {
    // Years beyond the range of 64 bits count as its end.
    if (time->tv_sec > INT64_MAX / BILLION - 1) return INT64_MAX;
    return time->tv_sec * BILLION + time->tv_nsec;
}

static inline int is_valid(const struct timespec *time) { return time->tv_nsec >= 0 && time->tv_nsec < BILLION; }

/// Finds the simulated clock for one of the library's; 0 for the clock of a single thread or device.
static inline int find_clock(clockid_t id, enum rlk_clock *clock) {
    switch (id) {
        case CLOCK_MONOTONIC:
        case CLOCK_MONOTONIC_RAW:
        case CLOCK_MONOTONIC_COARSE: *clock = rlk_clock_monotonic; return 1;
        case CLOCK_BOOTTIME:
        case CLOCK_BOOTTIME_ALARM: *clock = rlk_clock_boot; return 1;
        case CLOCK_REALTIME:
        case CLOCK_REALTIME_COARSE:
        case CLOCK_REALTIME_ALARM:
        case CLOCK_TAI: *clock = rlk_clock_wall; return 1;
        case CLOCK_PROCESS_CPUTIME_ID:
        case CLOCK_THREAD_CPUTIME_ID: *clock = rlk_clock_processor; return 1;
        default: return 0;
    }
}

/// Finds the moment on a simulated clock; 0 if there is no such moment or clock.
static inline int find_limit(clockid_t id, const struct timespec *end, struct rlk_wait_limit *limit) {
    if (!is_valid(end) || !find_clock(id, &limit->clock)) return 0;
    limit->time = nanoseconds(end);
    return 1;
}

/// Ends the first waits at an address for one of the bits; returns their number.
static inline int signal_simulated(const void *address, uint32_t bits, int most) {
    if (atomic_load_explicit(&rlk_simulated_waits, memory_order_relaxed) == 0) return 0;
    // Swift's runtime may use locks, whose release wakes no thread of a simulation.
    unsigned *answers = rlk_set_simulated(NULL);
    int woken = rlk_simulated_calls.signal(address, bits, most);
    rlk_set_simulated(answers);
    return woken;
}
