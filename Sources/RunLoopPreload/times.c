#include "preload.h"

#if defined(__x86_64__)

// Clocks and chance, which are answered within the process.

int64_t show(clockid_t clock) {
    count_step();
    switch (clock) {
        case CLOCK_REALTIME:
        case CLOCK_REALTIME_COARSE:
        case CLOCK_REALTIME_ALARM:
        case CLOCK_TAI: return page->clocks[rlk_clock_wall];
        case CLOCK_MONOTONIC:
        case CLOCK_MONOTONIC_RAW:
        case CLOCK_MONOTONIC_COARSE: return page->clocks[rlk_clock_monotonic];
        case CLOCK_BOOTTIME:
        case CLOCK_BOOTTIME_ALARM: return page->clocks[rlk_clock_boot];
        // Of the process, of a thread, or of one with a number.
        default: return page->clocks[rlk_clock_processor];
    }
}

long answer_sleep(clockid_t clock, int is_date, const struct timespec *time, struct timespec *left) {
    const int64_t second = 1000000000;
    if (time->tv_sec < 0 || (uint64_t)time->tv_nsec >= (uint64_t)second) return -EINVAL;
    enum rlk_clock kind = rlk_clock_monotonic;
    if (clock == CLOCK_REALTIME || clock == CLOCK_TAI) kind = rlk_clock_wall;
    if (clock == CLOCK_BOOTTIME) kind = rlk_clock_boot;
    int64_t date = time->tv_sec >= INT64_MAX / second ? INT64_MAX : time->tv_sec * second + time->tv_nsec;
    if (!is_date) {
        // Time that is set does not change a sleep of a length.
        if (kind == rlk_clock_wall) kind = rlk_clock_monotonic;
        int64_t now = page->clocks[kind];
        date = date > INT64_MAX - now ? INT64_MAX : date + now;
    }
    long result = ask(rlk_request_sleep, kind, date, 0, 0);
    if (result == -EINTR && left && !is_date) {
        int64_t length = date - page->clocks[kind];
        *left = (struct timespec){length / second, length % second};
    }
    return result;
}

static uint64_t rotate(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

/// The next number of xoshiro256**.
static uint64_t next_number(void) {
    uint64_t *state = page->seed, result = rotate(state[1] * 5, 7) * 9, shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate(state[3], 45);
    return result;
}

void fill_with_chance(void *bytes, size_t count) {
    for (char *end = (char *)bytes + count, *place = bytes; place < end; place += 8) {
        uint64_t number = next_number();
        size_t rest = (size_t)(end - place);
        memcpy(place, &number, rest < 8 ? rest : 8);
    }
}

#endif
