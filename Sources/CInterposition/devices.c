#define _GNU_SOURCE

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "escapes.h"
#include "real.h"

// Random numbers from /dev/random and /dev/urandom, which are opened as files. Other files are the system's.

REAL(int, open, const char *, int, mode_t)
REAL(int, openat, int, const char *, int, mode_t)
REAL(int, close, int)
REAL(ssize_t, read, int, void *, size_t)
REAL(FILE *, fopen, const char *, const char *)

enum { most_descriptors = 4096, bits = 8 * sizeof(unsigned long) };

/// The descriptors of these devices that threads of a simulation have opened, as bits.
static _Atomic unsigned long devices[most_descriptors / bits];

static int is_random(const char *path) { return strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0; }

static void escape(const char *path, int flags) {
    rlk_escape_to_file("opens the system's file", path, (flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT);
}

static int note(const char *path, int descriptor) {
    if (descriptor >= 0 && descriptor < most_descriptors && rlk_is_simulated() && is_random(path))
        atomic_fetch_or(&devices[descriptor / bits], 1UL << descriptor % bits);
    return descriptor;
}

static int is_noted(int descriptor) {
    if (descriptor < 0 || descriptor >= most_descriptors) return 0;
    return atomic_load_explicit(&devices[descriptor / bits], memory_order_relaxed) >> descriptor % bits & 1;
}

// The mode is passed on as it is, given or not: the library reads it only if it is given.
#define MODE(flags)                                                                                                            \
    va_list arguments;                                                                                                         \
    va_start(arguments, flags);                                                                                                \
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;                                             \
    va_end(arguments)

int open(const char *path, int flags, ...) {
    MODE(flags);
    escape(path, flags);
    return note(path, real_open()(path, flags, mode));
}

int openat(int folder, const char *path, int flags, ...) {
    MODE(flags);
    escape(path, flags);
    return note(path, real_openat()(folder, path, flags, mode));
}

int close(int descriptor) {
    if (is_noted(descriptor)) atomic_fetch_and(&devices[descriptor / bits], ~(1UL << descriptor % bits));
    return real_close()(descriptor);
}

ssize_t read(int descriptor, void *bytes, size_t count) {
    if (!is_noted(descriptor) || !rlk_is_simulated()) return real_read()(descriptor, bytes, count);
    rlk_simulated_calls.random(bytes, count);
    return count;
}

static ssize_t read_random(void *cookie, char *bytes, size_t count) {
    (void)cookie;
    rlk_simulated_calls.random(bytes, count);
    return count;
}

FILE *fopen(const char *restrict path, const char *restrict mode) {
    if (!rlk_is_simulated() || !is_random(path)) {
        escape(path, *mode == 'r' && !strchr(mode, '+') ? O_RDONLY : O_RDWR);
        return real_fopen()(path, mode);
    }
    return fopencookie(NULL, mode, (cookie_io_functions_t){.read = read_random});
}

// With addresses of 64 bits, these are the same functions.
extern __typeof(open) open64 __attribute__((alias("open")));
extern __typeof(openat) openat64 __attribute__((alias("openat")));
extern __typeof(fopen) fopen64 __attribute__((alias("fopen")));
