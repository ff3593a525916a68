#ifndef CSHIMS_FIBERS_H
#define CSHIMS_FIBERS_H

// The threads of a simulation are threads of the system, each with a stack and with its thread-local memory. One of
// them runs at a time. To hand over between them, the kernel would have to wake one thread and put another to sleep,
// which takes 5 to 13 µs. So all of them run on one thread of the system, the carrier: it changes the stack and the
// thread pointer, in a few nanoseconds. All thread-local state (pthread_self, errno, the current task of Swift's
// runtime and its record of accesses) changes with the thread pointer. The thread that was started for a fiber sleeps
// from the fiber's beginning to its end.

struct rlk_fiber;

/// Makes a carrier of the calling thread, and a fiber for the thread itself, which it is now running.
struct rlk_fiber *rlk_make_carrier(void);

/// Makes a fiber for a thread that is to be started; `resident` is the fiber of the carrier's own thread.
struct rlk_fiber *rlk_make_fiber(struct rlk_fiber *resident);

/// Frees a fiber that has left, was stopped, or has never begun; the resident one, with the carrier, when no other
/// runs.
void rlk_free_fiber(struct rlk_fiber *fiber);

/// Begins a fiber, which rests until it has its turn. Called on its thread. Returns 1 if the fiber was stopped.
int rlk_begin_fiber(struct rlk_fiber *fiber);

/// Hands over from the calling fiber to the next, perhaps the same; to none if a thread outside the simulation will
/// give a fiber the turn. Rests until the fiber has its turn again. Returns 1 if it was stopped: then it is on its own
/// thread, and it is not its turn.
int rlk_pass_turn(struct rlk_fiber *fiber, struct rlk_fiber *next);

/// Hands over for the last time. Continues on the fiber's own thread, outside the simulation.
void rlk_leave_carrier(struct rlk_fiber *fiber, struct rlk_fiber *next);

/// Gives a fiber the turn, which no other has. Called on a thread that does not run fibers of this carrier.
void rlk_give_turn(struct rlk_fiber *fiber);

/// Ends the rest of a fiber that is to run nothing more of the program, on its own thread. On a fiber that does not
/// rest, this takes effect when it hands over.
void rlk_stop_fiber(struct rlk_fiber *fiber, int rests);

/// Returns 1 if the calling thread runs on the carrier instead of its own thread of the system.
int rlk_is_carried(void);

/// Returns the kernel's number of the thread that carries the calling fiber; 0 on other threads.
int rlk_carrier_number(void);

/// Returns the kernel's number of the calling fiber's own thread, by which locks know their owner; 0 on other threads.
int rlk_fiber_number(void);

/// Makes a system call on the own thread of the calling fiber, for calls in which the kernel looks at the number of the
/// caller. Returns the result, or the error as a negative number.
long rlk_call_on_own_thread(long number, long a, long b, long c, long d);

#endif
