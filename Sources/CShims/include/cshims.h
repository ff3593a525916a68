#ifndef CSHIMS_H
#define CSHIMS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "fibers.h"
#include "mapped.h"
#include "probes.h"
#include "simulated.h"
#include "symbols.h"

extern volatile unsigned rlk_forks;

/// How many forks lie between the process that loaded this code and the one that runs it now.
static inline unsigned rlk_fork_count(void) { return rlk_forks; }

/// What Swift keeps for the calling thread. Not inline: a task may continue on another thread and must ask again.
void *rlk_get_thread_object(void);
void rlk_set_thread_object(void *object);

/// The tape of the calling thread, if its world is recorded or replayed.
void *rlk_get_thread_tape(void);
void rlk_set_thread_tape(void *tape);

/// Starts a thread; returns 0 or the reason. `rlk_end_thread` can end it from any of its frames.
int rlk_start_thread(pthread_t *thread, void *(*run)(void *), void *context);

/// Ends the calling thread, which `rlk_start_thread` has started, as if its function had returned. Its frames are given up as
/// they are: nothing that they hold is released, and nothing that waits for their end runs.
void rlk_end_thread(void) __attribute__((noreturn));

/// An event descriptor, non-blocking and closed on exec; -1 and errno on failure.
int rlk_eventfd(void);

/// Pages of their own, zeroed; NULL on failure.
void *rlk_make_pages(size_t bytes);

/// Grows or shrinks what `rlk_make_pages` made, with what is in it, perhaps at another address; NULL on failure, which
/// leaves it as it was.
void *rlk_resize_pages(void *pages, size_t bytes, size_t new_bytes);

/// A descriptor of memory that processes can share, closed in programs that are called; -1 and errno.
int rlk_make_memory(void);

/// How many bytes the caller may read of what the C library has allocated at this address, at least those asked for.
size_t rlk_allocated_size(const void *address);

/// Gives back what `rlk_make_pages` made.
void rlk_give_back_pages(void *pages, size_t bytes);

/// A number that the calling thread alone has as long as it runs. `pthread_self` is a call, for which callers save
/// registers. Volatile: a task may continue on another thread and must ask again.
static inline uintptr_t rlk_thread_pointer(void) {
    uintptr_t pointer;
#if defined(__x86_64__)
    __asm__ volatile("movq %%fs:0, %0" : "=r"(pointer));
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(pointer));
#else
    pointer = (uintptr_t)pthread_self();
#endif
    return pointer;
}

/// Asks for the line of the cache at an address, which will be written to. The address need not be valid.
static inline void rlk_prefetch(const void *address) { __builtin_prefetch(address, 1); }

/// The same number; the compiler does not know that, and does not use one in place of the other.
static inline intptr_t rlk_disguise(intptr_t number) {
    __asm__("" : "+r"(number));
    return number;
}

/// A timer descriptor on CLOCK_MONOTONIC, non-blocking and closed on exec; -1 and errno on failure.
int rlk_timerfd(void);

/// Sets a timer descriptor to an absolute time in nanoseconds, or disarms it with 0. Clears an expiry that was not read.
int rlk_timerfd_set(int descriptor, int64_t nanoseconds);

/// The epoll instance of this process that watches a descriptor; -1 if /proc shows none.
int rlk_find_epoll(int watched);

/// A descriptor that becomes readable each time the wall clock is set, and when the machine has slept; -1 and errno on
/// failure.
int rlk_clock_watch(void);

/// Reads what `rlk_clock_watch` made, so that it reports the next time.
void rlk_clock_watch_read(int descriptor);

/// Whether the caller is the process's first thread.
int rlk_is_main_thread(void);

/// The return addresses of the calls that are under way on the calling thread, the innermost first. Returns their number.
int rlk_return_addresses(uintptr_t *addresses, int most);

/// How many processors the calling thread may run on; at least 1.
int rlk_processor_count(void);

/// The kernel's number of the thread on which the caller runs: on a fiber, that of the carrier.
int rlk_thread_id(void);

/// The C library's functions for the library's own locks, also in a program that defines these functions again.
extern int (*rlk_lock_mutex)(pthread_mutex_t *);
extern int (*rlk_unlock_mutex)(pthread_mutex_t *);
static inline void rlk_lock(pthread_mutex_t *mutex) { rlk_lock_mutex(mutex); }
static inline void rlk_unlock(pthread_mutex_t *mutex) { rlk_unlock_mutex(mutex); }

/// For how long a thread of this process has computed, in nanoseconds; -1 if it has ended.
int64_t rlk_thread_time(int thread);

/// Whether a thread of this process waits for something other than a processor or a page of memory; 0 also if the
/// system does not tell.
int rlk_thread_sleeps(int thread);

/// Names the calling thread; the system keeps 15 bytes.
void rlk_set_thread_name(const char *name);

/// The calling thread's name in 16 bytes, with zero bytes behind it; `main` for the first thread.
void rlk_get_thread_name(void *name);

/// The number of the task of a job of Swift's runtime; 0 if the job is none of a task.
uint64_t rlk_task_number(uintptr_t job);

/// An event descriptor that becomes readable when libdispatch's main queue, which runs the jobs of the main actor, has
/// something to run; -1 and `errno` if it cannot be made, `ENOSYS` if libdispatch is not there.
int rlk_main_queue_descriptor(void);

/// Runs what waits in the main queue, on the main thread. Does nothing while that is under way.
void rlk_drain_main_queue(void);

#endif
