#ifndef PRELOAD_H
#define PRELOAD_H

#define _GNU_SOURCE

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <ucontext.h>

#include "programs.h"
#include "simulated.h"

// Code that runs where a program made a system call, on its stack, before the first instruction of the program and after
// its last. It calls no function that makes a system call, because the kernel would hand that to this code again: its own
// calls are instructions of this library, which the kernel lets pass.
//
// Only one thread of the process runs at a time, so nothing here needs a lock.
//
// On other processors than x86-64 the library is empty, and no program is started.

#if defined(__x86_64__)

#define HIDDEN __attribute__((visibility("hidden")))

/// The shared memory; NULL in a process that is not simulated.
HIDDEN extern struct rlk_program_page *page;

/// Returns 1 once the process has begun a second thread.
HIDDEN int has_threads(void);

/// The slot of the calling thread.
HIDDEN struct rlk_slot *own_slot(void);
HIDDEN void set_own_slot(struct rlk_slot *slot);

/// Makes a system call of the kernel. Returns the error as a negative number.
static inline __attribute__((always_inline)) long
kernel(long number, long a, long b, long c, long d, long e, long f) {
    register long fourth __asm__("r10") = d, fifth __asm__("r8") = e, sixth __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

/// Asks the simulation, and rests until the thread has its turn again. Returns the answer.
HIDDEN long ask(enum rlk_request request, int64_t a, int64_t b, int64_t c, int64_t d);

/// Notes that a call reaches beyond the simulation.
HIDDEN void escape(const char *words, long number);

/// Adds to a text of some length. Returns the new length.
HIDDEN size_t append(char *text, size_t length, const char *more);
HIDDEN size_t append_number(char *text, size_t length, long number);

/// Counts what takes no time. A thread that does very much of it at one moment may be polling, and has to rest.
HIDDEN void count_step(void);

/// Waits for the thread's first turn.
HIDDEN void await_turn(struct rlk_slot *slot);

/// A call of the program, and the place of it.
struct call {
    long number;
    long a, b, c, d, e, f;
    ucontext_t *context;
};

HIDDEN long answer(const struct call *call);

// The answers, by subject.
HIDDEN long answer_futex(const struct call *call);
HIDDEN int64_t show(clockid_t clock);
/// `left` becomes the time that a signal has taken from a sleep of a length.
HIDDEN long answer_sleep(clockid_t clock, int is_date, const struct timespec *time, struct timespec *left);
HIDDEN void fill_with_chance(void *bytes, size_t count);
HIDDEN long begin_thread(const struct call *call);
HIDDEN _Noreturn void end_thread(void);
HIDDEN long answer_file(const struct call *call, int *is_known);
HIDDEN long answer_stream(const struct call *call, int *is_known);

HIDDEN long answer_signal(const struct call *call, int *is_known);
HIDDEN long answer_child(const struct call *call, int *is_known);

struct clone_args;
/// Makes a process.
HIDDEN long make_process(const struct call *call, const struct clone_args *arguments);

/// Goes on as the first and only thread of a new process.
HIDDEN void forget_threads(void);

/// Opens a file of the simulation's process, which is the parent.
HIDDEN long open_of_simulation(long descriptor);

/// Returns 1 if the calling thread makes the calls of such a process.
HIDDEN int is_child(void);

/// Notes of a call's new descriptors whether they are closed when the process runs another program. Returns the call's
/// result.
HIDDEN long note_descriptors(const struct call *call, long result);

/// Closes all descriptors from one number to another.
HIDDEN long close_descriptors(unsigned first, unsigned last);

/// Takes over the actions and the set of blocked signals that the process had before it ran the program.
HIDDEN void inherit_signals(void);

/// Has the kernel call the handlers of signals that have come for the calling thread, before its call. Returns 0 if
/// there are none; else the call is made again after them.
HIDDEN int receive_before(const struct call *call);

/// Does the same after a call, which may be made again if it was interrupted.
HIDDEN void receive_after(const struct call *call, long result);

/// Returns the set of blocked signals that a call names for its own time; NULL if it names none.
HIDDEN const uint64_t *set_named_by(const struct call *call);

/// Answers a call that names such a set.
HIDDEN long answer_with_set(const struct call *call, uint64_t set);

/// Sends the calling thread a signal, which it receives when its call has been answered.
HIDDEN void raise_signal(int signal);

/// Has the kernel hand the calling thread's calls to this library.
HIDDEN void catch_calls(void);
HIDDEN void replace_kernel_functions(void);

/// Wakes waiting threads. Returns their number.
HIDDEN long wake(uint32_t *word, int most, uint32_t bits);

#endif

#endif
