#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "real.h"
#include <simulated.h>

// The surroundings of a process: threads of a simulated host find those of its process. The test's own threads have the real
// ones.

REAL(char *, getenv, const char *)
REAL(char *, secure_getenv, const char *)
REAL(int, setenv, const char *, const char *, int)
REAL(int, unsetenv, const char *)
REAL(int, putenv, char *)
REAL(int, clearenv, void)
REAL(int, gethostname, char *, size_t)
REAL(int, uname, struct utsname *)

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

/// Where Foundation reads the whole environment. Weak, because a program may have Foundation in itself.
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
