#define _GNU_SOURCE

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "real.h"

// The surroundings of a process, with its user and the users that its machine knows: threads of a simulated host find
// their process's. The test's own threads have the real ones.

REAL(char *, getenv, const char *)
REAL(char *, secure_getenv, const char *)
REAL(int, setenv, const char *, const char *, int)
REAL(int, unsetenv, const char *)
REAL(int, putenv, char *)
REAL(int, clearenv, void)
REAL(int, gethostname, char *, size_t)
REAL(int, uname, struct utsname *)
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

// MARK: The environment

char *getenv(const char *name) { return is_on_host() ? rlk_simulated_calls.variable(name) : real_getenv()(name); }

char *secure_getenv(const char *name) {
    return is_on_host() ? rlk_simulated_calls.variable(name) : real_secure_getenv()(name);
}

static int is_name(const char *name) {
    if (name && *name && !strchr(name, '=')) return 1;
    errno = EINVAL;
    return 0;
}

int setenv(const char *name, const char *value, int replaces) {
    if (!is_on_host()) return real_setenv()(name, value, replaces);
    if (!is_name(name)) return -1;
    if (replaces || !rlk_simulated_calls.variable(name)) rlk_simulated_calls.set_variable(name, value);
    return 0;
}

int unsetenv(const char *name) {
    if (!is_on_host()) return real_unsetenv()(name);
    if (!is_name(name)) return -1;
    rlk_simulated_calls.set_variable(name, NULL);
    return 0;
}

int putenv(char *line) {
    if (!is_on_host()) return real_putenv()(line);
    if (!strchr(line, '=')) return unsetenv(line);
    rlk_simulated_calls.put_variable(line);
    return 0;
}

int clearenv(void) {
    if (!is_on_host()) return real_clearenv()();
    rlk_simulated_calls.clear_variables();
    return 0;
}

extern char **environ;

/// The function with which Foundation reads the whole environment. Weak, because a program may have Foundation in
/// itself.
__attribute__((weak)) char **_platform_shims_get_environ(void) {
    return is_on_host() ? rlk_simulated_calls.environment() : environ;
}

// MARK: The name of the host

int gethostname(char *name, size_t room) {
    if (!is_on_host()) return real_gethostname()(name, room);
    const char *own = rlk_simulated_calls.host_name();
    size_t length = strlen(own) + 1;
    memcpy(name, own, length < room ? length : room);
    if (length <= room) return 0;
    errno = ENAMETOOLONG;
    return -1;
}

int uname(struct utsname *names) {
    int status = real_uname()(names);
    if (status == 0 && is_on_host()) {
        names->nodename[0] = 0;
        strncat(names->nodename, rlk_simulated_calls.host_name(), sizeof names->nodename - 1);
    }
    return status;
}

// MARK: The user

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

// MARK: The users of the machine

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
