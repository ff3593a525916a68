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

/// Returns the number of forks between the process that loaded this code and the one that runs it now.
static inline unsigned rlk_fork_count(void) { return rlk_forks; }

/// Returns Swift's object for the calling thread. Not inline: a task may continue on another thread and must ask again.
void *rlk_get_thread_object(void);
void rlk_set_thread_object(void *object);

/// Returns the tape of the calling thread, if its world is recorded or replayed.
void *rlk_get_thread_tape(void);
void rlk_set_thread_tape(void *tape);

/// Starts a thread; returns 0 or the reason. `rlk_end_thread` can end it from any of its frames.
int rlk_start_thread(pthread_t *thread, void *(*run)(void *), void *context);

/// Joins a thread if the system has ended it, with its thread-local memory; returns 1 then.
int rlk_join_if_ended(pthread_t thread);

/// Ends the calling thread, which `rlk_start_thread` has started, as if its function had returned. Its frames are
/// abandoned: the objects that they hold are not released, and code that waits for their end does not run.
void rlk_end_thread(void) __attribute__((noreturn));

/// Returns an event descriptor, non-blocking and closed on exec; -1 and errno on failure.
int rlk_eventfd(void);

/// Allocates whole pages, zeroed; NULL on failure.
void *rlk_make_pages(size_t bytes);

/// Grows or shrinks an allocation of `rlk_make_pages`, keeping its contents, perhaps at another address. Returns NULL
/// on failure, which leaves the allocation as it was.
void *rlk_resize_pages(void *pages, size_t bytes, size_t new_bytes);

/// Returns a descriptor of memory that processes can share, closed on exec; -1 and errno on failure.
int rlk_make_memory(void);

/// Returns the number of readable bytes in an allocation of the C library, at least the number requested.
size_t rlk_allocated_size(const void *address);

/// Frees an allocation of `rlk_make_pages`.
void rlk_give_back_pages(void *pages, size_t bytes);

/// Returns a number that the calling thread alone has as long as it runs. `pthread_self` is a call, for which callers
/// save registers. Volatile: a task may continue on another thread and must ask again.
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

/// Prefetches the cache line at an address, for writing. The address need not be valid.
static inline void rlk_prefetch(const void *address) { __builtin_prefetch(address, 1); }

/// Returns the same number, which the compiler cannot know, so that it does not use one in place of the other.
static inline intptr_t rlk_disguise(intptr_t number) {
    __asm__("" : "+r"(number));
    return number;
}

/// Returns a timer descriptor on CLOCK_MONOTONIC, non-blocking and closed on exec; -1 and errno on failure.
int rlk_timerfd(void);

/// Sets a timer descriptor to an absolute time in nanoseconds, or disarms it with 0. Clears an expiry that was not read.
int rlk_timerfd_set(int descriptor, int64_t nanoseconds);

/// Returns the epoll instance of this process that watches a descriptor; -1 if /proc shows none.
int rlk_find_epoll(int watched);

/// Returns a descriptor that becomes readable each time the wall clock is set, and when the machine has slept; -1 and
/// errno on failure.
int rlk_clock_watch(void);

/// Reads a descriptor of `rlk_clock_watch`, so that it reports the next time.
void rlk_clock_watch_read(int descriptor);

/// Returns 1 if the caller is the process's first thread.
int rlk_is_main_thread(void);

/// Stores the return addresses of the calls under way on the calling thread, the innermost first. Returns their number.
int rlk_return_addresses(uintptr_t *addresses, int most);

/// Returns the number of processors that the calling thread may run on; at least 1.
int rlk_processor_count(void);

/// Returns the kernel's number of the thread on which the caller runs; on a fiber, the carrier's.
int rlk_thread_id(void);

/// The C library's functions for the library's own locks, even in a program that defines these functions again.
extern int (*rlk_lock_mutex)(pthread_mutex_t *);
extern int (*rlk_unlock_mutex)(pthread_mutex_t *);
static inline void rlk_lock(pthread_mutex_t *mutex) { rlk_lock_mutex(mutex); }
static inline void rlk_unlock(pthread_mutex_t *mutex) { rlk_unlock_mutex(mutex); }

/// Returns the processor time of a thread of this process, in nanoseconds; -1 if the thread has ended.
int64_t rlk_thread_time(int thread);

/// Returns 1 if a thread of this process waits for something other than a processor or a page of memory; 0 also if the
/// system does not report it.
int rlk_thread_sleeps(int thread);

/// Names the calling thread; the system keeps 15 bytes.
void rlk_set_thread_name(const char *name);

/// Stores the calling thread's name in 16 bytes, padded with zero bytes; `main` for the first thread.
void rlk_get_thread_name(void *name);

/// Returns the number of the task of a job of Swift's runtime; 0 if the job belongs to no task.
uint64_t rlk_task_number(uintptr_t job);

/// Returns an event descriptor that becomes readable when libdispatch's main queue, which runs the jobs of the main
/// actor, has something to run; -1 and `errno` if it cannot be made, `ENOSYS` without libdispatch.
int rlk_main_queue_descriptor(void);

/// Runs the blocks waiting in the main queue, on the main thread. Does nothing while that is under way.
void rlk_drain_main_queue(void);

#endif
