#ifndef CALLS_H
#define CALLS_H

#define _GNU_SOURCE

#include <errno.h>
#include <stdint.h>
#include <stddef.h>
#include <time.h>

// Random calls of one kind. What a call is follows from the seed and its number alone, so that some can be left out.

/// Returns a number of the present call's chance, from 0 to below a limit.
int chance(int limit);
/// Returns 1 once in so many times.
static inline int once_in(int times) { return chance(times) == 0; }

/// Begins or continues the present call's line.
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/// Tells of a call's result, or its error. Returns the result.
long tell_result(long result);
/// Tells of bytes.
void tell_bytes(const void *bytes, long count);

/// The time of one step, in nanoseconds: limits of time are whole numbers of it.
extern long step;
struct timespec steps(long count);
void rest(long nanoseconds);

/// A kind of calls.
struct kind {
    const char *name;
    void (*begin)(void);
    void (*call)(void);
};
extern const struct kind set_kind, timer_kind, stream_kind, futex_kind, lock_kind, mapping_kind;

#endif
