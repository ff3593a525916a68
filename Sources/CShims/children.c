#define _GNU_SOURCE

#include "children.h"
#include "quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Headers that are older than the kernel lack these.
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
/// P_PIDFD, which is a macro or an enumerator or missing.
enum { BY_DESCRIPTOR = 3 };

static int add_actions(const struct rlk_spawn_request *request, posix_spawn_file_actions_t *actions) {
    int error = 0;
    for (int target = 0; target < 3 && !error; target++) {
        int stream = request->streams[target];
        if (stream == RLK_STREAM_NULL) {
            error = posix_spawn_file_actions_addopen(actions, target, "/dev/null", O_RDWR, 0);
        } else if (stream >= 0) {
            error = posix_spawn_file_actions_adddup2(actions, stream, target);
        }
    }
    // What other code has opened without closing it on exec is not the child's either.
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(actions, 3);
    if (!error && request->directory) error = posix_spawn_file_actions_addchdir_np(actions, request->directory);
    return error;
}

static int set_attributes(const struct rlk_spawn_request *request, posix_spawnattr_t *attributes) {
    short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(attributes, &all);
    if (request->group == RLK_GROUP_NEW) {
        flags |= POSIX_SPAWN_SETPGROUP;
        if (!error) error = posix_spawnattr_setpgroup(attributes, 0);
    }
    if (request->group == RLK_SESSION_NEW) flags |= POSIX_SPAWN_SETSID;
    return error ? error : posix_spawnattr_setflags(attributes, flags);
}

int rlk_spawn(const struct rlk_spawn_request *request, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = add_actions(request, &actions);
        if (!error) error = set_attributes(request, &attributes);
        if (!error) {
            char *const *environment = request->environment ? request->environment : environ;
            error = (request->searches_path ? posix_spawnp : posix_spawn)(
                pid, request->executable, &actions, &attributes, request->arguments, environment);
        }
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int rlk_pidfd_open(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

int rlk_pidfd_send_signal(int descriptor, int signal) {
    return (int)syscall(SYS_pidfd_send_signal, descriptor, signal, NULL, 0);
}

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

int rlk_child_state(pid_t pid, int descriptor, int reaps, struct rlk_exit *result) {
    siginfo_t info;
    if (wait_for(pid, descriptor, WNOHANG | (reaps ? 0 : WNOWAIT), &info) != 0) return -1;
    result->code = info.si_pid == 0 ? 0 : info.si_code;
    result->status = info.si_pid == 0 ? 0 : info.si_status;
    return 0;
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

static int start_reaper(struct orphan *orphan) {
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error) return error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    // The program's signal handlers shall not run on so small a stack.
    sigset_t all, saved;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    pthread_t thread;
    error = pthread_create(&thread, &attributes, reap, orphan);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

int rlk_reap_later(pid_t pid, int descriptor) {
    siginfo_t info;
    int status = wait_for(pid, descriptor, WNOHANG, &info);
    int error = 0;
    if (status == 0 && info.si_pid == 0) {
        struct orphan *orphan = malloc(sizeof *orphan);
        if (orphan) {
            *orphan = (struct orphan){pid, descriptor};
            error = start_reaper(orphan);
            if (!error) return 0;
            free(orphan);
        } else {
            error = ENOMEM;
        }
    }
    if (descriptor >= 0) close(descriptor);
    return error;
}

int rlk_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

ssize_t rlk_write_quietly(int descriptor, const void *bytes, size_t count) {
    struct rlk_quiet quiet = rlk_begin_quiet();
    ssize_t written;
    do {
        written = write(descriptor, bytes, count);
    } while (written < 0 && errno == EINTR);
    rlk_end_quiet(&quiet, written);
    return written;
}
