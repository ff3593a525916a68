// Calls that would end the process with SIGPIPE if nobody reads any more, made an error of.
#pragma once
#include <errno.h>
#include <signal.h>
#include <time.h>

struct rlk_quiet {
    sigset_t broken, saved;
    int was_blocked, was_pending;
};

/// The signal of a broken pipe goes to the thread that writes: it is blocked for the call.
static inline struct rlk_quiet rlk_begin_quiet(void) {
    struct rlk_quiet quiet;
    sigemptyset(&quiet.broken);
    sigaddset(&quiet.broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &quiet.broken, &quiet.saved);
    // A signal that is not blocked does not stay pending.
    quiet.was_blocked = sigismember(&quiet.saved, SIGPIPE);
    quiet.was_pending = 0;
    if (quiet.was_blocked) {
        sigset_t pending;
        sigpending(&pending);
        quiet.was_pending = sigismember(&pending, SIGPIPE);
    }
    return quiet;
}

/// The signal is taken back if it came from the call, which returned `result`. Leaves errno alone.
static inline void rlk_end_quiet(struct rlk_quiet *quiet, long result) {
    int error = errno;
    if (result < 0 && error == EPIPE && !quiet->was_pending) {
        struct timespec at_once = {0, 0};
        while (sigtimedwait(&quiet->broken, NULL, &at_once) < 0 && errno == EINTR) {}
    }
    if (!quiet->was_blocked) pthread_sigmask(SIG_SETMASK, &quiet->saved, NULL);
    errno = error;
}
