#define _GNU_SOURCE

#include <dirent.h>
#include <limits.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "escapes.h"
#include "real.h"

// A simulation does not answer these calls: they reach threads that it does not know, or the system's own network and files,
// which all hosts share and which survive their crashes. Each is an escape.

REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
REAL(int, socket, int, int, int)
REAL(int, getaddrinfo, const char *, const char *, const struct addrinfo *, struct addrinfo **)
REAL(int, creat, const char *, mode_t)
REAL(DIR *, opendir, const char *)
REAL(int, mkdir, const char *, mode_t)
REAL(int, rmdir, const char *)
REAL(int, unlink, const char *)
REAL(int, rename, const char *, const char *)
REAL(int, truncate, const char *, off_t)

void rlk_escape(const char *what, const char *name) {
    if (!rlk_is_simulated()) return;
    char words[PATH_MAX + 128];
    snprintf(words, sizeof words, name ? "%s \"%s\"" : "%s", what, name);
    unsigned *answers = rlk_set_simulated(NULL);
    rlk_simulated_calls.escape(words);
    rlk_set_simulated(answers);
}

static int begins(const char *path, const char *start) { return strncmp(path, start, strlen(start)) == 0; }

/// Returns 1 if a file belongs to the installation of the machine, so that each run finds the same.
static int is_installed(const char *path) {
    static const char *const folders[] = {"/usr/", "/lib", "/sys/", "/etc/localtime", "/etc/timezone", "/etc/ssl/"};
    for (size_t index = 0; index < sizeof folders / sizeof *folders; index++)
        if (begins(path, folders[index])) return 1;
    return 0;
}

void rlk_escape_to_file(const char *what, const char *path, int changes) {
    // Files of the kernel are about this process and its devices.
    if (!path || begins(path, "/dev/") || begins(path, "/proc/") || (!changes && is_installed(path))) return;
    rlk_escape(what, path);
}

// MARK: Threads

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*run)(void *), void *restrict context) {
    rlk_escape("starts a thread of the system, which is not one of the simulation", NULL);
    return real_pthread_create()(thread, attributes, run, context);
}

// MARK: The network

int socket(int domain, int type, int protocol) {
    rlk_escape("makes a socket of the system", NULL);
    return real_socket()(domain, type, protocol);
}

// Weak, because a C library within the program has it in one object with other functions.
__attribute__((weak)) int getaddrinfo(const char *restrict node, const char *restrict service, const struct addrinfo *restrict hints, struct addrinfo **restrict result) {
    // A number is its own address.
    int asks = !hints || !(hints->ai_flags & AI_NUMERICHOST);
    if (asks) rlk_escape("asks the system for the address of", node ? node : "this machine");
    return real_getaddrinfo()(node, service, hints, result);
}

// MARK: Files

int creat(const char *path, mode_t mode) {
    rlk_escape_to_file("makes the system's file", path, 1);
    return real_creat()(path, mode);
}

DIR *opendir(const char *path) {
    rlk_escape_to_file("reads the system's directory", path, 0);
    return real_opendir()(path);
}

int mkdir(const char *path, mode_t mode) {
    rlk_escape_to_file("makes the system's directory", path, 1);
    return real_mkdir()(path, mode);
}

int rmdir(const char *path) {
    rlk_escape_to_file("removes the system's directory", path, 1);
    return real_rmdir()(path);
}

int unlink(const char *path) {
    rlk_escape_to_file("removes the system's file", path, 1);
    return real_unlink()(path);
}

int rename(const char *path, const char *new_path) {
    rlk_escape_to_file("renames the system's file", path, 1);
    return real_rename()(path, new_path);
}

int truncate(const char *path, off_t size) {
    rlk_escape_to_file("changes the system's file", path, 1);
    return real_truncate()(path, size);
}

// With addresses of 64 bits, these are the same functions.
extern __typeof(creat) creat64 __attribute__((alias("creat")));
extern __typeof(truncate) truncate64 __attribute__((alias("truncate")));
