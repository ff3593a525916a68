#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real.h"
#include <simulated.h>

// The user of a process, and the users that its machine knows.

REAL(uid_t, getuid, void)
REAL(uid_t, geteuid, void)
REAL(gid_t, getgid, void)
REAL(gid_t, getegid, void)
REAL(int, getgroups, int, gid_t *)
REAL(struct passwd *, getpwuid, uid_t)
REAL(struct passwd *, getpwnam, const char *)
REAL(int, getpwuid_r, uid_t, struct passwd *, char *, size_t, struct passwd **)
REAL(int, getpwnam_r, const char *, struct passwd *, char *, size_t, struct passwd **)

static int is_on_host(void) { return rlk_is_simulated() && rlk_simulated_calls.is_on_host(); }

uid_t getuid(void) { return is_on_host() ? rlk_simulated_calls.user() : real_getuid()(); }
uid_t geteuid(void) { return is_on_host() ? rlk_simulated_calls.user() : real_geteuid()(); }
gid_t getgid(void) { return is_on_host() ? rlk_simulated_calls.group() : real_getgid()(); }
gid_t getegid(void) { return is_on_host() ? rlk_simulated_calls.group() : real_getegid()(); }

int getgroups(int room, gid_t *groups) {
    if (!is_on_host()) return real_getgroups()(room, groups);
    int count = rlk_simulated_calls.groups(groups, room);
    if (room == 0 || count <= room) return count;
    errno = EINVAL;
    return -1;
}

// MARK: The users of a machine

/// Finds a user by name or, without one, by number, as `getpwnam_r` does.
static int find(const char *name, uid_t number, struct passwd *user, char *room, size_t size, struct passwd **found) {
    *found = NULL;
    size_t length;
    char *text = rlk_simulated_calls.users(&length);
    FILE *file = length > 0 ? fmemopen(text, length, "r") : NULL;
    int status = 0;
    while (file && (status = fgetpwent_r(file, user, room, size, found)) == 0) {
        if (name ? strcmp(user->pw_name, name) == 0 : user->pw_uid == number) break;
        *found = NULL;
    }
    if (file) fclose(file);
    free(text);
    return status == ENOENT ? 0 : status;
}

int getpwnam_r(const char *restrict name, struct passwd *restrict user, char *restrict room, size_t size, struct passwd **restrict found) {
    if (!is_on_host()) return real_getpwnam_r()(name, user, room, size, found);
    return find(name, 0, user, room, size, found);
}

int getpwuid_r(uid_t number, struct passwd *restrict user, char *restrict room, size_t size, struct passwd **restrict found) {
    if (!is_on_host()) return real_getpwuid_r()(number, user, room, size, found);
    return find(NULL, number, user, room, size, found);
}

static struct passwd *find_here(const char *name, uid_t number) {
    // One for each thread, because simulations may run at the same time.
    static _Thread_local struct passwd user;
    static _Thread_local char room[1024];
    struct passwd *found;
    int status = find(name, number, &user, room, sizeof room, &found);
    if (status != 0) errno = status;
    return found;
}

struct passwd *getpwnam(const char *name) { return is_on_host() ? find_here(name, 0) : real_getpwnam()(name); }
struct passwd *getpwuid(uid_t number) { return is_on_host() ? find_here(NULL, number) : real_getpwuid()(number); }
