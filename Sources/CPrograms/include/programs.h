#ifndef CPROGRAMS_H
#define CPROGRAMS_H

#include <signal.h>
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
    /// Sleeps until a clock (an `rlk_clock`), if it is not negative, shows a time, or a signal comes.
    rlk_request_sleep,
    /// Waits at an address for a wake-up with one of some bits, until a clock, if it is not negative, shows a time, or a
    /// signal comes.
    rlk_request_wait,
    /// Ends waits at an address with one of some bits, at most so many; returns their number.
    rlk_request_wake,
    /// Ends waits at an address, at most so many, and then has at most so many of the others wait at another address,
    /// which comes second; returns the number of both.
    rlk_request_move,
    /// Rests because much was done at one moment.
    rlk_request_rest,
    /// Lets another thread go first, if the simulation chooses that.
    rlk_request_place,
    /// Returns the number of the slot for a thread that is about to begin; `EAGAIN` if there are too many.
    rlk_request_begin_thread,
    /// Tells of the end of the thread.
    rlk_request_end_thread,
    /// Ends the process with a status.
    rlk_request_end,
    /// Ends the process by a signal.
    rlk_request_end_by_signal,
    /// Makes a child that has a copy of the memory. The data become the simulation's descriptor of the child's page.
    rlk_request_begin_fork,
    /// Tells of the child's number for the kernel, or an error number below zero. The child comes first.
    rlk_request_end_fork,
    /// Makes a child with the descriptors of the process, in whose place the thread makes requests from now on. Returns its
    /// number.
    rlk_request_begin_child,
    /// Ends the child with a status before it has run a program.
    rlk_request_end_child,
    /// Runs a program in the child or else in the process: the data are its path, so many arguments, and so many
    /// variables, each with a zero byte. The first argument is not used.
    rlk_request_execute,
    /// Waits for the end of a child, which a kind and a number name as for `waitid`. The data become a code, a value and a
    /// user. Returns the child's number; with 1, 0 if none has ended. With 2, it may be asked again.
    rlk_request_await_child,
    /// Sets the group of a process to a number, or with 1 begins a session.
    rlk_request_set_group,
    /// Returns the group of a process, or with 1 its session.
    rlk_request_group,
    /// Opens a descriptor of the process with a number, which comes second.
    rlk_request_open_process,
    /// Sends a signal to the process of a descriptor.
    rlk_request_signal_process,
    /// Sends a signal to a process, or to a group, as `kill` does.
    rlk_request_kill,
    /// Ends the rest of the thread with a slot, which has a signal.
    rlk_request_interrupt,
    /// Sets the timer that sends SIGALRM to a length and a period, in nanoseconds; 0 for none. The data become the former
    /// two numbers. With 1, only these are read.
    rlk_request_set_alarm,
    /// Opens a descriptor at which signals of a set are read.
    rlk_request_signals,
    /// Changes the set of such a descriptor, which comes first.
    rlk_request_change_signals,
    /// Notes the text as an escape.
    rlk_request_escape,
    /// Marks a moment, with the name in the data.
    rlk_request_mark,
    // With a descriptor first: the directory of a relative path, which is in the data.

    /// Opens a file, with the system's flags, and permissions for a new one.
    rlk_request_open,
    /// Describes a path or, if there is none, the descriptor: the data become an `rlk_status`. With 1, a symbolic link at
    /// the end is not followed.
    rlk_request_status,
    /// Tells whether the process may use a path in the ways of `access`. With 1, a symbolic link is not followed.
    rlk_request_access,
    /// Makes a directory with permissions.
    rlk_request_make_directory,
    /// Makes a symbolic link to the first text, at the path that follows a zero byte and belongs to another directory.
    rlk_request_make_link,
    /// The data become the path in a symbolic link.
    rlk_request_read_link,
    /// Gives the file at the first path, or if that is empty the descriptor's, the second path, which follows a zero byte
    /// and belongs to another directory. With 1, a symbolic link is followed.
    rlk_request_add_name,
    /// Sets the times of the last read and write of a path or, if there is none, of the descriptor; each is a time in
    /// nanoseconds, or an `rlk_time`. With 1, a symbolic link is not followed.
    rlk_request_set_times,
    /// Makes the file at a path so long.
    rlk_request_truncate_path,
    /// Removes a file, or with 1 a directory.
    rlk_request_remove,
    /// Renames the first path to the second one, which follows a zero byte and belongs to another directory, with the
    /// system's flags.
    rlk_request_rename,
    /// Sets the permissions of a path or, if there is none, of the descriptor.
    rlk_request_permit,
    /// Sets the owner and the group, -1 for the present one, of a path or, if there is none, of the descriptor. With 1, a
    /// symbolic link is not followed.
    rlk_request_own,
    /// Makes a path or, if there is none, the descriptor, the working directory.
    rlk_request_enter,
    /// The data become the path of the working directory, with a zero byte.
    rlk_request_directory,

    /// Returns the lowest free descriptor, which becomes one of the system's, too.
    rlk_request_adopt,

    // With a descriptor first. Flags are `rlk_transfer`.

    /// Writes the data, to the address if there is one, with flags.
    rlk_request_write,
    /// Reads at most so many bytes, with flags. The address becomes the sender's.
    rlk_request_read,
    rlk_request_close,
    /// Closes all descriptors up to another one.
    rlk_request_close_range,
    /// Duplicates the descriptor as the lowest free number that is not below another, or as exactly that with 1.
    rlk_request_duplicate,
    /// Sets whether the descriptor blocks.
    rlk_request_set_blocking,
    /// Returns the descriptor's access and whether it blocks, as flags of the system.
    rlk_request_flags,
    /// Returns the number of bytes that can be read.
    rlk_request_input,

    /// Writes the data to a file at an offset.
    rlk_request_write_at,
    /// Reads at most so many bytes of a file from an offset on.
    rlk_request_read_at,
    /// Moves the place in a file as `lseek` does, and returns it. In a directory, it counts names.
    rlk_request_seek,
    /// Makes a file so long.
    rlk_request_truncate,
    /// Makes room for a part of a file as `fallocate` does, with a mode, an offset and a length.
    rlk_request_allocate,
    rlk_request_sync,
    /// Locks a file as `flock` does.
    rlk_request_lock,
    /// Locks a part of a file: the data are an `rlk_part_lock`, and become another one that is in the way if there is one.
    rlk_request_lock_part,
    /// Returns the simulation's descriptor of memory with the file, which is mapped with a protection.
    rlk_request_share,
    /// Tells where that memory was mapped, and how much of it.
    rlk_request_note_mapping,
    /// Syncs the files that are mapped at an address, in place of the descriptor, and in so many bytes after it.
    rlk_request_sync_memory,
    /// The data become the next names in a directory, from a place on: each with an `rlk_name` before it, and a zero byte.
    rlk_request_names,

    /// Opens a socket of a family, of datagrams with 1.
    rlk_request_socket,
    /// Opens two connected descriptors: of a Unix socket, or with 1 of a pipe. They are in the data as two numbers.
    rlk_request_pair,
    rlk_request_bind,
    rlk_request_listen,
    /// Accepts a connection. The address becomes the peer's.
    rlk_request_accept,
    rlk_request_connect,
    /// Ends the output, the input, or both, as `shutdown` has it.
    rlk_request_shut_down,
    /// Sets the address to the socket's own, or with 1 to the peer's.
    rlk_request_name,
    /// Sets an option of a level to a number; one of a time to nanoseconds.
    rlk_request_set_option,
    /// Reads an option of a level; its value is in the data.
    rlk_request_option,

    /// Opens a counter with a value, and 1 if each read takes one event.
    rlk_request_counter,
    /// Opens a timer of a clock, in place of the descriptor.
    rlk_request_timer,
    /// Sets the timer to a length, or with 1 to a date of its clock, and a period; 0 for none. The data become the former
    /// length and period.
    rlk_request_set_timer,
    /// The data become the length and the period of a timer.
    rlk_request_read_timer,
    /// Opens a set of descriptors, as of `epoll`.
    rlk_request_set,
    /// Changes a set as `epoll_ctl` does, with an operation, a descriptor, and an event in the data.
    rlk_request_change_set,
    /// Waits for events of a set, at most so many, for so many nanoseconds; -1 for ever. They are in the data.
    rlk_request_await_set,
    /// Waits for the descriptors of `pollfd` in the data, in place of the descriptor, for so many nanoseconds; with 1 only
    /// for events that they name.
    rlk_request_poll,
};

/// The flags of a transfer.
enum rlk_transfer {
    rlk_transfer_never_waits = 1,
    rlk_transfer_keeps_input = 2,
    /// Waits until there is no more room.
    rlk_transfer_fills = 4,
    /// Is meant for sockets alone.
    rlk_transfer_of_socket = 8,
    /// A read takes descriptors that came with the bytes, as many as the fourth argument says.
    rlk_transfer_takes_descriptors = 16,
};

/// The control data of a message over a Unix socket: descriptors of the process, and the sender.
struct rlk_control {
    int32_t descriptors[253];
    uint32_t count;
    /// 1 if there were more descriptors than the reader has room for.
    uint32_t is_cut;
    /// The sender's process, with its user and group, if the reader asks for them; 0 for none.
    int32_t process;
    uint32_t user, group;
};

/// A lock of a part of a file, with the system's numbers for its kind and its origin.
struct rlk_part_lock {
    int32_t kind, origin;
    int64_t start, length;
    int32_t process;
    /// An `rlk_lock_use`.
    int32_t use;
};

/// The purpose of a lock's request, and whether the lock belongs to the open file instead of the process.
enum rlk_lock_use { rlk_lock_asks, rlk_lock_tries, rlk_lock_waits, rlk_lock_of_file = 4 };

/// The facts about a file.
struct rlk_status {
    uint32_t mode, user, group, names;
    uint64_t number, size;
    /// The times of the last read, write and change, in nanoseconds.
    int64_t read, written, changed;
};

/// Times of a file that are none: the present one, and the one that it has.
enum rlk_time { rlk_time_now = -1, rlk_time_same = -2 };

/// The facts about a name in a directory: the number of its file, and the kind, as `getdents` has it.
struct rlk_name {
    uint64_t number;
    uint8_t kind;
};

/// Flags of `renameat2` and of `fallocate`.
enum { rlk_rename_keeps = 1, rlk_rename_exchanges = 2 };
enum { rlk_allocate_keeps_size = 1, rlk_allocate_hole = 2, rlk_allocate_zeros = 16 };

/// An event of a set, and the number that the program gave it.
struct rlk_set_event {
    uint32_t events;
    uint32_t unused;
    uint64_t data;
};

/// Operations on a set, and flags of its events, as the system has them.
enum rlk_set_operation { rlk_set_add = 1, rlk_set_remove, rlk_set_modify };
enum {
    rlk_set_failure = 0x8,
    rlk_set_hang_up = 0x10,
    rlk_set_exclusive = 1 << 28,
    rlk_set_once = 1 << 30,
    rlk_set_on_edge = 1u << 31,
    /// The flags that an exclusive entry may have: input, output, a failure, a hang-up, an edge, and one for sleep.
    rlk_set_beside_exclusive = 0xb000001du,
};

/// The most threads that a program has at a time, the most bytes of a request, and the most descriptors.
enum { rlk_most_threads = 256, rlk_most_bytes = 65536, rlk_most_descriptors = 4096 };

/// The state of a slot.
enum rlk_turn {
    /// The program's thread has made a request, or has not begun.
    rlk_turn_of_simulation,
    rlk_turn_of_program,
    /// The program's thread has ended.
    rlk_turn_over,
};

/// The set that a signal alone makes, as the kernel has sets.
static inline uint64_t rlk_bit_of_signal(int signal) { return 1ull << (signal - 1); }

/// The signals that do nothing to a process without a handler for them.
static inline uint64_t rlk_harmless_signals(void) {
    return rlk_bit_of_signal(SIGCHLD) | rlk_bit_of_signal(SIGURG) | rlk_bit_of_signal(SIGWINCH) |
           rlk_bit_of_signal(SIGCONT);
}

struct rlk_slot {
    /// An `rlk_turn`, at which both sides wait.
    _Atomic uint32_t turn;
    uint32_t request;
    int64_t arguments[4];
    int64_t result;
    uint32_t count;
    /// An address of a socket.
    char address[128];
    uint32_t address_size;
    struct rlk_control control;
    /// The following are the program's own.
    /// The numbers of the thread for the program, and for the kernel.
    int32_t number, real_number;
    /// The word at which others wait for the thread's end.
    uint32_t *end_word;
    /// The registers with which the thread begins.
    uint64_t registers[17];
    /// The following are sets of signals: those that the thread blocks, those that it waits for, and those that it is to
    /// receive.
    uint64_t blocked, awaited, pending;
    /// The address of the number of the thread that holds the lock for which this one waits, and that of its caller's
    /// frame; 0 if it waits for none, or the caller is not known.
    uint64_t holder, frame;
    /// The name that the thread has given itself.
    char name[16];
    char data[rlk_most_bytes];
};

/// The memory that a program shares with the simulation.
struct rlk_program_page {
    /// The clocks, each an `rlk_clock`, in nanoseconds.
    int64_t clocks[4];
    /// The seed of the process's random numbers.
    uint64_t seed[4];
    int32_t process, parent;
    /// The number of the process for the kernel.
    int32_t real_process;
    /// The number of the simulation's process.
    int32_t simulation;
    /// The distance of the program in memory from its place according to its file.
    uint64_t distance;
    uint32_t user, group;
    /// The permissions that new files do not get.
    uint32_t mask;
    /// 1 if the simulation is explored.
    uint32_t is_explored;
    /// Sets of signals: those that have a handler, those that are ignored, and those that any thread may receive.
    uint64_t handled, ignored, pending;
    /// 1 for each descriptor that is closed when the process runs another program.
    uint8_t closes_on_exec[rlk_most_descriptors];
    char host_name[65];
    /// The folder of the program, with a slash at the end.
    char program_folder[4096];
    struct rlk_slot slots[rlk_most_threads];
};

/// Makes the memory of a program, all zero; NULL if there is none. `descriptor` becomes its number.
struct rlk_program_page *rlk_make_program(int *descriptor);

/// Gives the memory back to the system, but for the addresses, at which zeros are read.
void rlk_empty_program(struct rlk_program_page *page, int descriptor);

void rlk_free_program(struct rlk_program_page *page);

/// Starts a program with the library first and without random addresses. Returns 0, or an error number.
int rlk_start_program(
    int descriptor, const char *path, char *const *arguments, char *const *environment, pid_t *process);

/// The facts about a process that stay as they are, and the seed of its random numbers.
struct rlk_program_facts {
    int32_t process, parent;
    uint32_t user, group, is_explored;
    const char *host_name;
    /// The folder of the program, with a slash at the end.
    const char *folder;
    uint64_t seed[4];
};

void rlk_set_facts(struct rlk_program_page *page, const struct rlk_program_facts *facts);

/// The place of a slot, at which its thread rests.
const void *rlk_place_of(const struct rlk_program_page *page, int slot);

/// Finds the slot of the thread that holds the lock for which the thread with a slot waits; -1 if it waits for none, or the
/// holder is not known.
int rlk_find_slot_of_holder(const struct rlk_program_page *page, int slot);

/// The name that the thread with a slot has given itself; empty if it has none.
const char *rlk_name_of(const struct rlk_program_page *page, int slot);

/// Finds the instructions behind the calls that led to the wait for a lock, as addresses of the program's file, if the
/// callers keep frames. Returns their number.
int rlk_find_callers(const struct rlk_program_page *page, int slot, uintptr_t *addresses, int room);

/// A thread's request. The data stay where they are until the next one.
struct rlk_asked {
    enum rlk_request request;
    int64_t arguments[4];
    char *data;
    uint32_t count;
    char *address;
    uint32_t address_size;
    struct rlk_control *control;
};

/// The reason why a program's thread has given its turn back.
enum rlk_pause { rlk_thread_asks, rlk_thread_has_ended, rlk_process_has_ended };

/// Shows a program's thread the clocks, and lets it run, in real time, until it asks for something.
enum rlk_pause rlk_run_program(
    struct rlk_program_page *page, int slot, pid_t process, const int64_t clocks[4], struct rlk_asked *asked);

/// Sets the answer to a thread's request, with the number of data bytes, and the size of the address.
void rlk_answer_program(struct rlk_program_page *page, int slot, int64_t result, size_t count, size_t address_size);

/// The way of a signal to a program, if not to the thread with a slot.
enum rlk_signal_way { rlk_signal_is_ignored = -1, rlk_signal_is_blocked = -2, rlk_signal_ends_process = -3 };

/// Gives a program a signal. Returns the slot of the thread that is to receive it, among the first ones, or an
/// `rlk_signal_way`.
int rlk_signal_program(struct rlk_program_page *page, int slots, int signal);

/// Gives a program what the thread with a slot of another one, which runs it, leaves to it: signals that are ignored or
/// blocked, and the mask of permissions.
void rlk_inherit(struct rlk_program_page *page, const struct rlk_program_page *former, int slot);

/// Gives a program all that the thread with a slot of another one leaves to a copy of its process.
void rlk_fork(struct rlk_program_page *page, const struct rlk_program_page *former, int slot);

/// Returns 1 if a descriptor is closed when the process runs another program.
int rlk_closes_on_exec(const struct rlk_program_page *page, int descriptor);

/// Returns 1 if a program has chosen to ignore a signal.
int rlk_ignores_signal(const struct rlk_program_page *page, int signal);

/// Returns 1 if the thread with a slot is to receive a signal.
int rlk_has_signal(const struct rlk_program_page *page, int slot);

/// Returns the signals of a set that wait for the thread with a slot.
uint64_t rlk_pending_signals(const struct rlk_program_page *page, int slot, uint64_t set);

/// Takes a signal away that the thread with a slot has read.
void rlk_take_signal(struct rlk_program_page *page, int slot, int signal);

/// A file in memory of which a program can map a part.
struct rlk_mapped {
    int descriptor;
    char *bytes;
    size_t size;
};

/// Makes the memory as long as a file, or, if its descriptor is -1, makes it. Returns 0, or an error number.
int rlk_resize_mapped(struct rlk_mapped *mapped, size_t size);
void rlk_unmap(struct rlk_mapped *mapped);

/// Kills a program and waits for its end. Returns the status as `waitpid` does.
int rlk_kill_program(pid_t process);

#endif
