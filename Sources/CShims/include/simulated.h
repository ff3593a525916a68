#ifndef CSHIMS_SIMULATED_H
#define CSHIMS_SIMULATED_H

#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>

// The answers of simulations to calls of the C library. CInterposition, which only test programs have, hands such calls of a
// simulation's threads to them.

/// The clocks of a simulated machine.
enum rlk_clock {
    /// The time since the machine was started, without the time that it has slept.
    rlk_clock_monotonic,
    /// The time since the machine was started, including the time that it has slept.
    rlk_clock_boot,
    /// The wall clock.
    rlk_clock_wall,
    /// The processor time of the process.
    rlk_clock_processor
};

/// The objects of the C library at which threads wait; those of a program only for threads of the program.
enum rlk_awaited { rlk_awaits_condition, rlk_awaits_semaphore, rlk_awaits_futex, rlk_awaits_program };

/// The time that ends a wait.
struct rlk_wait_limit {
    enum rlk_clock clock;
    int64_t time;
};

/// The end of a wait for a signal.
enum rlk_wait_end {
    rlk_wait_was_signalled,
    rlk_wait_limit_passed,
    /// The thread's process or simulation ends.
    rlk_wait_is_over
};

/// The end of a wait for a lock.
enum rlk_lock_wait {
    /// A thread outside the simulation has the lock, so the caller has not waited.
    rlk_lock_is_outside,
    rlk_lock_was_released,
    rlk_lock_limit_passed
};

/// Finds the number of the thread that has a lock now; 0 if none has it, or that is not known.
typedef int rlk_find_holder(const void *lock);

/// The calls that a simulation answers, made only on its threads. Times are in nanoseconds.
struct rlk_simulated_calls {
    int64_t (*time)(enum rlk_clock clock);
    /// Sleeps until the clock shows a time.
    void (*sleep)(enum rlk_clock clock, int64_t time);
    /// Makes signals at the address with one of these bits count from now on, although the wait begins later.
    void (*begin_wait)(const void *address, uint32_t bits);
    /// Calls off a wait that is not needed after all.
    void (*call_off_wait)(void);
    /// Waits until the address is signalled or the clock shows a time; returns whether it was signalled.
    int (*wait_until)(enum rlk_clock clock, int64_t time);
    /// Waits in the same way, but not beyond the end of the thread's process or simulation.
    enum rlk_wait_end (*wait_at_most)(enum rlk_clock clock, int64_t time);
    /// Waits until the address is signalled.
    void (*wait)(enum rlk_awaited awaited);
    /// Waits until a lock signals one of the bits, or a limit, if there is one, has passed. Called also on threads of a
    /// simulation that does not answer calls.
    enum rlk_lock_wait (*wait_for_lock)(
        const void *lock, uint32_t bits, rlk_find_holder *find_holder, const struct rlk_wait_limit *limit);
    /// Waits for the end of a thread, if it belongs to the simulation. Called also on threads of a simulation that does
    /// not answer calls.
    void (*join)(pthread_t thread);
    void (*random)(void *bytes, size_t count);
    /// Returns 1 if the calling thread belongs to a host's process, which has surroundings of its own. The calls below
    /// are for such threads.
    int (*is_on_host)(void);
    /// Returns the value of an environment variable, which stays forever; NULL if there is none.
    char *(*variable)(const char *name);
    /// Sets a variable; with NULL, removes it.
    void (*set_variable)(const char *name, const char *value);
    /// Makes the caller's line a part of the environment.
    void (*put_variable)(char *line);
    void (*clear_variables)(void);
    /// Returns the lines of the environment and NULL, valid until the next call.
    char **(*environment)(void);
    /// Returns the name of the host, which stays forever.
    const char *(*host_name)(void);
    /// Returns the number of the user, or of the user's group.
    unsigned (*user)(void);
    unsigned (*group)(void);
    /// Writes the numbers of the further groups, as far as there is room, and returns their number.
    int (*groups)(unsigned *groups, int room);
    /// Returns the text of `/etc/passwd`, which the caller frees.
    char *(*users)(size_t *length);
    /// Notes that the calling thread leaves the simulation, with words for its act.
    void (*escape)(const char *what);
    /// Ends the first waits at an address for one of the bits, and returns their number. Called on any thread.
    int (*signal)(const void *address, uint32_t bits, int most);
};

extern struct rlk_simulated_calls rlk_simulated_calls;

/// Returns the installed answers, which do not change any more once a simulation has begun.
const struct rlk_simulated_calls *rlk_installed_calls(void);

/// Installs the answers. Called before the first simulation of the process begins.
void rlk_answer_calls(struct rlk_simulated_calls calls);

/// Fills memory with random bytes of the calling thread's simulation.
void rlk_simulated_random(void *bytes, size_t count);

/// Waits for a semaphore in real time, also on a thread of a simulation.
void rlk_wait_really(sem_t *semaphore);

/// Waits for a semaphore; not for use on a thread of a simulation. Returns 0 if it was not signalled in that time.
int rlk_wait_at_most(sem_t *semaphore, int64_t nanoseconds);

/// The number of waits at addresses.
extern _Atomic int rlk_simulated_waits;
void rlk_count_simulated_wait(int change);

/// The answers of a simulation to its threads.
enum rlk_answers {
    rlk_answers_nothing,
    rlk_answers_calls,
    /// The simulation also chooses what comes first where the order is open.
    rlk_answers_and_explores
};

/// Makes memory for a simulation's answers: an `rlk_answers`, the number of steps that its tasks have taken, and its
/// notes about locks.
unsigned *rlk_make_answers(void);
void rlk_free_answers(unsigned *answers);

/// Returns 1 if the calling thread belongs to a simulation, which may answer calls.
int rlk_is_in_simulation(void);

/// Returns 1 if the calling thread belongs to the simulation with these answers.
int rlk_is_answered_from(const unsigned *answers);

/// Returns 1 if a simulation answers the calls of the calling thread.
int rlk_is_simulated(void);

/// Returns 1 if an exploration answers the calls of the calling thread.
int rlk_is_explored(void);

/// Counts a step on a thread of a simulation that answers calls: a job of a task, a change of its executor, a look at a
/// clock. Returns 1 if so many have been taken that a task may be running forever.
int rlk_take_step(void);

/// Lets a simulation answer the calls of the calling thread from now on; NULL for the C library. Returns the former
/// pointer, which is one from `rlk_make_answers`.
unsigned *rlk_set_simulated(unsigned *answers);

/// Sets the answers of a thread that joins a simulation or leaves it.
void rlk_begin_simulated(unsigned *answers);

/// Notes that the calling thread holds, or no longer holds, a lock whose owner the C library does not report.
void rlk_note_lock(const void *lock);
void rlk_forget_lock(const void *lock);

/// Returns the number of a thread of the caller's simulation that holds such a lock; 0 if none does.
int rlk_find_lock(const void *lock);

/// Sets whether the calling thread looks for the holder of a lock, and returns whether it did so before.
int rlk_look_for_holder(int looks);

/// Returns the number by which locks know the calling thread.
int rlk_own_number(void);

/// Called when the calling thread joins a simulation or leaves it; may be NULL.
extern void (*rlk_thread_is_simulated)(int is_simulated);

/// A thread of the system, whose calls the kernel may dispatch to the program.
struct rlk_dispatch {
    /// 1 while calls are dispatched. The kernel reads it.
    volatile char filter;
    /// 1 once the kernel knows of it.
    char is_asked;
};

/// Returns the dispatch of the calling thread; on a fiber, the carrier's. It stays as long as the thread of the system.
struct rlk_dispatch *rlk_dispatch_of_thread(void);

/// Sets whether the calling thread's calls are dispatched.
void rlk_set_filter(char filter);

/// Switches the calling fiber to a carrier's dispatch.
void rlk_use_dispatch(struct rlk_dispatch *dispatch);

#endif
