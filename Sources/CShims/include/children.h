#ifndef CSHIMS_CHILDREN_H
#define CSHIMS_CHILDREN_H

#include <stddef.h>
#include <sys/types.h>

/// What a child's standard descriptor is to be; a number from 3 on is a descriptor of the caller's.
enum { RLK_STREAM_INHERIT = -1, RLK_STREAM_NULL = -2 };

/// The process group of a child.
enum { RLK_GROUP_INHERIT, RLK_GROUP_NEW, RLK_SESSION_NEW };

struct rlk_spawn_request {
    const char *executable;
    /// Whether to look for it in PATH.
    int searches_path;
    char *const *arguments;
    /// NULL: the caller's.
    char *const *environment;
    /// NULL: the caller's.
    const char *directory;
    int streams[3];
    int group;
};

/// Starts a child with all signals unblocked and at their defaults, and no descriptor but the standard ones. 0, or an
/// error number.
int rlk_spawn(const struct rlk_spawn_request *request, pid_t *pid);

/// A descriptor of a child process, closed on exec; -1 and errno, which is ENOSYS before Linux 5.3.
int rlk_pidfd_open(pid_t pid);

/// Sends a signal to the very process; 0, or -1 and errno.
int rlk_pidfd_send_signal(int descriptor, int signal);

/// How a child has ended.
struct rlk_exit {
    /// CLD_EXITED, CLD_KILLED or CLD_DUMPED; 0 while it runs.
    int code;
    /// The exit code or the signal.
    int status;
};

/// Looks at a child without waiting, by its descriptor or, if that is negative, by its number. 0, or -1 and errno.
int rlk_child_state(pid_t pid, int descriptor, int reaps, struct rlk_exit *result);

/// Reaps a child that nobody asks about any more, and closes its descriptor unless that is negative; in a thread of its
/// own if the child still runs. 0, or an error number if there is no such thread.
int rlk_reap_later(pid_t pid, int descriptor);

/// A pipe, closed on exec; 0, or -1 and errno.
int rlk_pipe(int ends[2]);

/// As `write`, but a pipe without a reader is an error and no signal.
ssize_t rlk_write_quietly(int descriptor, const void *bytes, size_t count);

#endif
