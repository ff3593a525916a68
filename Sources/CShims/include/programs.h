#ifndef CSHIMS_PROGRAMS_H
#define CSHIMS_PROGRAMS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// A program of the system as a process of a simulated host. Its code runs in a real process, in which the library of
// RunLoopPreload is loaded first and answers every system call: from a page of shared memory, or by asking the
// simulation. Each of its threads has a slot in that memory, and a thread of the simulation that serves the slot. A
// thread of the program runs only while the serving thread waits for its next request, so that one thread of the whole
// simulation runs at a time.

/// The requests of a program's thread, with their arguments. The result of each is a number, or an error number below zero.
enum rlk_request {
    /// Sleeps until a clock (an `rlk_clock`) shows a time.
    rlk_request_sleep,
    /// Waits for a signal at an address with one of some bits, until a clock, if it is not negative, shows a time.
    rlk_request_wait,
    /// Ends waits at an address with one of some bits, at most so many; returns their number.
    rlk_request_signal,
    /// Rests because much was done at one moment.
    rlk_request_rest,
    /// Returns the number of the slot for a thread that is about to begin; `EAGAIN` if there are too many.
    rlk_request_begin_thread,
    /// Tells of the end of the thread.
    rlk_request_end_thread,
    /// Ends the process with a status.
    rlk_request_end,
    /// Notes the text as an escape.
    rlk_request_escape,
    /// Writes the data to a descriptor.
    rlk_request_write,
    /// Reads at most so many bytes from a descriptor.
    rlk_request_read,
    /// Closes a descriptor.
    rlk_request_close,
    /// Returns the lowest free descriptor, which becomes one of the system's.
    rlk_request_adopt,
};

/// The most threads that a program has at a time, and the most bytes of a request.
enum { rlk_most_threads = 256, rlk_most_bytes = 65536 };

/// The state of a slot.
enum rlk_turn {
    /// The program's thread has made a request, or has not begun.
    rlk_turn_of_simulation,
    rlk_turn_of_program,
    /// The program's thread has ended.
    rlk_turn_over,
};

struct rlk_slot {
    /// An `rlk_turn`, at which both sides wait.
    _Atomic uint32_t turn;
    uint32_t request;
    int64_t arguments[4];
    int64_t result;
    uint32_t count;
    /// The following are the program's own.
    /// The numbers of the thread for the program, and for the kernel.
    int32_t number, real_number;
    /// The word at which others wait for the thread's end.
    uint32_t *end_word;
    /// The registers with which the thread begins, and its signal mask.
    uint64_t registers[17], mask;
    char data[rlk_most_bytes];
};

/// The memory that a program shares with the simulation.
struct rlk_program_page {
    /// The clocks, each an `rlk_clock`, in nanoseconds.
    int64_t clocks[4];
    /// The seed of the process's random numbers.
    uint64_t seed[4];
    int32_t process, parent;
    uint32_t user, group;
    char host_name[65];
    /// The folder of the program, with a slash at the end.
    char program_folder[4096];
    struct rlk_slot slots[rlk_most_threads];
};

/// Makes the memory of a program, all zero; NULL if there is none. `descriptor` becomes its number.
struct rlk_program_page *rlk_make_program(int *descriptor);

void rlk_free_program(struct rlk_program_page *page, int descriptor);

/// Starts a program with the library first and without random addresses. Returns 0, or an error number.
int rlk_start_program(
    int descriptor, const char *path, char *const *arguments, char *const *environment, pid_t *process);

/// The facts about a process that stay as they are, and the seed of its random numbers.
struct rlk_program_facts {
    int32_t process, parent;
    uint32_t user, group;
    const char *host_name;
    /// The folder of the program, with a slash at the end.
    const char *folder;
    uint64_t seed[4];
};

void rlk_set_facts(struct rlk_program_page *page, const struct rlk_program_facts *facts);

/// A thread's request. The data stay where they are until the next one.
struct rlk_asked {
    enum rlk_request request;
    int64_t arguments[4];
    char *data;
    uint32_t count;
};

/// The reason why a program's thread has given its turn back.
enum rlk_pause { rlk_thread_asks, rlk_thread_has_ended, rlk_process_has_ended };

/// Shows a program's thread the clocks, and lets it run, in real time, until it asks for something.
enum rlk_pause rlk_run_program(
    struct rlk_program_page *page, int slot, pid_t process, const int64_t clocks[4], struct rlk_asked *asked);

/// Sets the answer to a thread's request.
void rlk_answer_program(struct rlk_program_page *page, int slot, int64_t result);

/// Kills a program and waits for its end. Returns the status as `waitpid` does.
int rlk_kill_program(pid_t process);

#endif
