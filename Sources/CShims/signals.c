#define _GNU_SOURCE

#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The handler reads a list of listeners that is never locked and never shrinks. A listener is an event descriptor,
// which does the counting: the handler adds to it, its loop reads the sum, and a sleeping loop wakes.

struct listener {
    /// The signal; 0 while the listener is free.
    _Atomic int signal;
    _Atomic int descriptor;
    /// The number of handlers that may be writing at the moment: the descriptor must stay open.
    _Atomic unsigned writers;
    _Atomic(struct listener *) next;
};

static _Atomic(struct listener *) first;
/// The process whose listeners these are. A child has a copy, and must not write to what it shares with its parent.
static _Atomic pid_t owner;

/// Guards the following variables, and changes of the list.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned listener_count[NSIG];
static struct sigaction former[NSIG];

static void deliver(int signal) {
    int saved = errno;
    if (getpid() != atomic_load(&owner)) {
        // A child between fork and exec. Nobody listens here: as if the handler had never been, also for this delivery.
        sigaction(signal, &former[signal], NULL);
        kill(getpid(), signal);
        errno = saved;
        return;
    }
    for (struct listener *listener = atomic_load(&first); listener; listener = atomic_load(&listener->next)) {
        if (atomic_load(&listener->signal) != signal) continue;
        // Announced, then looked at again: a listener that goes meanwhile either sees the announcement and waits, or
        // is seen to have gone.
        atomic_fetch_add(&listener->writers, 1);
        if (atomic_load(&listener->signal) == signal) {
            uint64_t one = 1;
            // The write fails only if 2^64 - 2 deliveries have not been read.
            (void)!write(atomic_load(&listener->descriptor), &one, sizeof one);
        }
        atomic_fetch_sub(&listener->writers, 1);
    }
    errno = saved;
}

/// Restores the former disposition, if the handler was not replaced by other code, whose choice it then is.
static void restore(int signal) {
    struct sigaction present;
    if (sigaction(signal, NULL, &present) == 0 && present.sa_handler == deliver) sigaction(signal, &former[signal], NULL);
}

static struct listener *free_listener(void) {
    _Atomic(struct listener *) *end = &first;
    for (struct listener *listener; (listener = atomic_load(end)); end = &listener->next) {
        if (atomic_load(&listener->signal) == 0) return listener;
    }
    struct listener *added = calloc(1, sizeof *added);
    if (added) atomic_store(end, added);
    return added;
}

void *rlk_signal_add(int signal, int descriptor) {
    if (signal < 1 || signal >= NSIG) {
        errno = EINVAL;
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct listener *listener = free_listener();
    if (listener) {
        atomic_store(&listener->descriptor, descriptor);
        atomic_store(&listener->signal, signal);
        if (listener_count[signal] == 0) {
            // Calls that a signal interrupts continue; no other signal comes between; a thread's own signal stack is
            // used.
            struct sigaction ours = {.sa_handler = deliver, .sa_flags = SA_RESTART | SA_ONSTACK};
            sigfillset(&ours.sa_mask);
            if (sigaction(signal, NULL, &former[signal]) != 0 || sigaction(signal, &ours, NULL) != 0) {
                atomic_store(&listener->signal, 0);
                listener = NULL;
            }
        }
        if (listener) listener_count[signal]++;
    }
    pthread_mutex_unlock(&lock);
    return listener;
}

void rlk_signal_remove(void *handle) {
    struct listener *listener = handle;
    pthread_mutex_lock(&lock);
    int signal = atomic_load(&listener->signal);
    // The disposition first: so each delivery is either counted or treated as before.
    if (--listener_count[signal] == 0) restore(signal);
    atomic_store(&listener->signal, 0);
    while (atomic_load(&listener->writers) != 0) sched_yield();
    pthread_mutex_unlock(&lock);
}

int rlk_signal_ignore(int signal) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    int status = 0;
    pthread_mutex_lock(&lock);
    if (signal > 0 && signal < NSIG && listener_count[signal] != 0) {
        former[signal] = ignore;
    } else {
        status = sigaction(signal, &ignore, NULL);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static void before_fork(void) { pthread_mutex_lock(&lock); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&lock); }

/// Lets a child begin as if there had been no listeners.
static void after_fork_in_child(void) {
    for (int signal = 1; signal < NSIG; signal++) {
        if (listener_count[signal] != 0) restore(signal);
        listener_count[signal] = 0;
    }
    for (struct listener *listener = atomic_load(&first); listener; listener = atomic_load(&listener->next)) {
        atomic_store(&listener->signal, 0);
        atomic_store(&listener->writers, 0);
    }
    atomic_store(&owner, getpid());
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void prepare(void) {
    atomic_store(&owner, getpid());
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
