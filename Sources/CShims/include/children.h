#ifndef CSHIMS_CHILDREN_H
#define CSHIMS_CHILDREN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The file behind a child's standard descriptor; a number from 3 on is a descriptor of the caller's.
enum { RLK_STREAM_INHERIT = -1, RLK_STREAM_NULL = -2 };

/// The process group of a child.
enum { RLK_GROUP_INHERIT, RLK_GROUP_NEW, RLK_SESSION_NEW };

/// The steps of a child, in order, before the other program runs.
enum {
    RLK_STEP_FORK,
    RLK_STEP_STREAMS,
    RLK_STEP_GROUP,
    RLK_STEP_LIMITS,
    RLK_STEP_USER,
    RLK_STEP_DIRECTORY,
    RLK_STEP_EXECUTE
};

/// A resource of `setrlimit`, and the limit for the child.
struct rlk_limit {
    int resource;
    uint64_t value;
};

struct rlk_spawn_request {
    /// The files to try one after another; a null pointer ends each of these lists.
    char *const *executables;
    char *const *arguments;
    char *const *environment;
    /// The working directory; NULL for the caller's.
    const char *directory;
    int streams[3];
    int group;
    const struct rlk_limit *limits;
    int limit_count;
    /// 1 if the child runs as the following user.
    int changes_user;
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    int group_count;
};

/// The step that has failed, and its error number.
struct rlk_failure {
    int step;
    int error;
};

/// Starts a child with all signals unblocked and at their defaults, and no descriptors except the standard ones.
/// Returns when the other program runs: 0, or an error number, and then there is no child.
int rlk_spawn(const struct rlk_spawn_request *request, pid_t *pid, struct rlk_failure *failure);

/// Returns this process's environment, which another thread may change.
char *const *rlk_environment(void);

/// Returns a descriptor of a child process, closed on exec; -1 and errno, which is ENOSYS before Linux 5.3.
int rlk_pidfd_open(pid_t pid);

/// Sends a signal to exactly the process of the descriptor; 0, or -1 and errno.
int rlk_pidfd_send_signal(int descriptor, int signal);

/// Looks at a child without waiting, by its descriptor or, if that is negative, by its number. Returns CLD_EXITED,
/// CLD_KILLED or CLD_DUMPED, and the exit code or the signal; 0 while the child runs; -1 and errno if there is none.
int rlk_child_state(pid_t pid, int descriptor, int reaps, int *status);

/// Reaps a child that is no longer needed, and closes its descriptor if that is not negative; in a thread of its own if
/// the child still runs.
void rlk_reap_later(pid_t pid, int descriptor);

/// Makes a pipe, closed on exec; 0, or -1 and errno.
int rlk_pipe(int ends[2]);

/// Looks for a child of this process that has ended, without reaping it: its number, 0 if none has, -1 if there is no
/// child.
pid_t rlk_ended_child(void);

#endif
