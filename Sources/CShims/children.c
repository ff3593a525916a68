#define _GNU_SOURCE

#include "children.h"

#include "simulated.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// ThreadSanitizer makes a fork of every vfork.
enum { COPIES_ALWAYS = __has_feature(thread_sanitizer) };
/// P_PIDFD, which is a macro or an enumerator or missing.
enum { BY_DESCRIPTOR = 3 };

static int wait_for(pid_t pid, int descriptor, int options, siginfo_t *info) {
    idtype_t kind = descriptor >= 0 ? (idtype_t)BY_DESCRIPTOR : P_PID;
    id_t which = (id_t)(descriptor >= 0 ? descriptor : pid);
    int status;
    do {
        memset(info, 0, sizeof *info);
        status = waitid(kind, which, info, options | WEXITED);
        // Linux 5.3 has such descriptors, and waits for them from 5.4 on.
        if (status != 0 && errno == EINVAL && kind != P_PID) {
            kind = P_PID;
            which = (id_t)pid;
            errno = EINTR;
        }
    } while (status != 0 && errno == EINTR);
    return status;
}

// Between the fork and the exec nothing is called but what is safe in a signal handler: other threads may have held any
// lock. Where the C library's functions do more than the system call, or sanitizers put locks of their own around them,
// it is the system call.

static void set_default_signals(void) {
    // The kernel's structure and its set of signals are not the C library's; all zero is the default, and none.
    static const uint64_t zeros[8];
    for (int signal = 1; signal < NSIG; signal++) syscall(SYS_rt_sigaction, signal, zeros, NULL, sizeof zeros[0]);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, zeros, NULL, sizeof zeros[0]);
}

static int set_streams(const int streams[3]) {
    for (int target = 0; target < 3; target++) {
        int stream = streams[target];
        if (stream == RLK_STREAM_INHERIT) continue;
        if (stream == RLK_STREAM_NULL) stream = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
        if (stream < 0) return -1;
        // The lowest free number, which a file that was just opened has, may be the target.
        int status = stream == target ? fcntl(target, F_SETFD, 0) : (int)syscall(SYS_dup3, stream, target, 0);
        if (status < 0) return -1;
    }
    return 0;
}

static int set_group(int group) {
    if (group == RLK_GROUP_NEW) return setpgid(0, 0);
    if (group == RLK_SESSION_NEW) return setsid() < 0 ? -1 : 0;
    return 0;
}

static int set_limits(const struct rlk_spawn_request *request) {
    for (int i = 0; i < request->limit_count; i++) {
        struct rlimit limit = {request->limits[i].value, request->limits[i].value};
        if (setrlimit(request->limits[i].resource, &limit) != 0) return -1;
    }
    return 0;
}

static int set_user(const struct rlk_spawn_request *request) {
    if (!request->changes_user) return 0;
    // The C library's functions of these names would tell the parent's threads. The groups first: afterwards it may not
    // be allowed any more.
    if (syscall(SYS_setgroups, (size_t)request->group_count, request->groups) != 0) return -1;
    if (syscall(SYS_setresgid, request->gid, request->gid, request->gid) != 0) return -1;
    return (int)syscall(SYS_setresuid, request->uid, request->uid, request->uid);
}

/// Tries one file after another, as a search in PATH does.
static void execute(const struct rlk_spawn_request *request) {
    int refused = 0;
    for (char *const *file = request->executables; *file; file++) {
        execve(*file, request->arguments, request->environment);
        if (errno == EACCES) {
            refused = 1;
        } else if (errno != ENOENT && errno != ENOTDIR && errno != ENODEV && errno != ESTALE && errno != ETIMEDOUT) {
            return;
        }
    }
    // One that is there and may not be run tells more than another that is not there.
    if (refused) errno = EACCES;
}

/// Makes the calling process the child. Returns the step that has failed.
static int become(const struct rlk_spawn_request *request) {
    // First, so that what this process closes meanwhile is not held open for long.
    if (set_streams(request->streams) != 0) return RLK_STEP_STREAMS;
    // Descriptors that other code has opened without closing them on exec are not the child's either.
    closefrom(3);
    set_default_signals();
    if (set_group(request->group) != 0) return RLK_STEP_GROUP;
    if (set_limits(request) != 0) return RLK_STEP_LIMITS;
    if (set_user(request) != 0) return RLK_STEP_USER;
    // As the child's user, who has to be allowed to go there.
    if (request->directory && chdir(request->directory) != 0) return RLK_STEP_DIRECTORY;
    execute(request);
    return RLK_STEP_EXECUTE;
}

/// Starts the child, and is suspended until the other program runs or the child has failed. A function of its own,
/// because the child may share its stack.
__attribute__((noinline)) static pid_t start(const struct rlk_spawn_request *request, struct rlk_failure *failure) {
    // vfork shares the memory and copies no page tables. A child that changes its user gets a copy: in a shared memory
    // the system would take from the parent, too, the right to be traced and to dump core.
    pid_t pid = request->changes_user || COPIES_ALWAYS ? (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0)
                                                       : vfork();
    if (pid != 0) return pid;
    int step = become(request);
    *failure = (struct rlk_failure){step, errno};
    syscall(SYS_exit_group, 127);
    __builtin_unreachable();
}

int rlk_spawn(const struct rlk_spawn_request *request, pid_t *pid, struct rlk_failure *result) {
    *result = (struct rlk_failure){RLK_STEP_FORK, 0};
    // Shared with a child that gets a copy of all else.
    struct rlk_failure *failure =
        mmap(NULL, sizeof *failure, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (failure == MAP_FAILED) return result->error = errno;
    *failure = *result;
    // No signal handler may run in the child, whose memory may be this process's.
    sigset_t all, saved;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    *pid = start(request, failure);
    if (*pid < 0) failure->error = errno;
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    *result = *failure;
    munmap(failure, sizeof *failure);
    siginfo_t info;
    if (*pid > 0 && result->error) wait_for(*pid, -1, 0, &info);
    return result->error;
}

char *const *rlk_environment(void) { return environ; }

int rlk_pidfd_open(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

int rlk_pidfd_send_signal(int descriptor, int signal) {
    return (int)syscall(SYS_pidfd_send_signal, descriptor, signal, NULL, 0);
}

int rlk_child_state(pid_t pid, int descriptor, int reaps, int *status) {
    siginfo_t info;
    if (wait_for(pid, descriptor, WNOHANG | (reaps ? 0 : WNOWAIT), &info) != 0) return -1;
    *status = info.si_status;
    return info.si_code;
}

pid_t rlk_ended_child(void) {
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
        if (errno != EINTR) return -1;
    }
    return info.si_pid;
}

struct orphan {
    pid_t pid;
    int descriptor;
};

static void *reap(void *context) {
    struct orphan orphan = *(struct orphan *)context;
    free(context);
    siginfo_t info;
    wait_for(orphan.pid, orphan.descriptor, 0, &info);
    if (orphan.descriptor >= 0) close(orphan.descriptor);
    return NULL;
}

/// Returns 1 if there is room for the thread.
static int start_reaper(pid_t pid, int descriptor) {
    struct orphan *orphan = malloc(sizeof *orphan);
    if (!orphan) return 0;
    *orphan = (struct orphan){pid, descriptor};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    // The program's signal handlers shall not run on so small a stack.
    sigset_t all, saved;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    pthread_t thread;
    unsigned *answers = rlk_set_simulated(NULL);
    int error = pthread_create(&thread, &attributes, reap, orphan);
    rlk_set_simulated(answers);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attributes);
    if (error) free(orphan);
    return !error;
}

void rlk_reap_later(pid_t pid, int descriptor) {
    siginfo_t info;
    int still_runs = wait_for(pid, descriptor, WNOHANG, &info) == 0 && info.si_pid == 0;
    // Without room for a thread the child stays a zombie until this process ends: no caller can receive the error.
    if (still_runs && start_reaper(pid, descriptor)) return;
    if (descriptor >= 0) close(descriptor);
}

int rlk_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }
