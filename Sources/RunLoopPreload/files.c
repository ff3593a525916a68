#include "preload.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

// Descriptors and files. The simulation has a table of the descriptors; those of the installation's files, which are the
// same for all hosts and runs, are the kernel's too, with the same numbers.

enum { most_descriptors = 4096 };
/// 1 for a descriptor of the kernel's.
static unsigned char is_real[most_descriptors];

static int is_kernels(int descriptor) {
    return descriptor >= 0 && descriptor < most_descriptors && is_real[descriptor];
}

static int begins(const char *path, const char *start) {
    while (*start)
        if (*path++ != *start++) return 0;
    return 1;
}

/// Returns 1 if a file belongs to the installation of the machine, or to the program, so that each run finds the same.
static int is_installed(const char *path) {
    static const char folders[][24] = {
        "/usr/", "/lib", "/bin/", "/sys/devices/system", "/etc/ld.so", "/etc/localtime", "/etc/ssl/", "/proc/self/exe",
        "/dev/null"};
    for (size_t index = 0; index < sizeof folders / sizeof *folders; index++)
        if (begins(path, folders[index])) return 1;
    return begins(path, page->program_folder) || strcmp(path, "/usr") == 0 || strcmp(path, "/") == 0;
}

/// Gives a file of the kernel the number that the simulation has for it.
static long adopt(long descriptor, int flags) {
    if (descriptor < 0) return descriptor;
    long number = ask(rlk_request_adopt, 0, 0, 0, 0);
    if (number >= most_descriptors) number = -EMFILE;
    if (number >= 0 && number != descriptor) kernel(SYS_dup3, descriptor, number, flags & O_CLOEXEC, 0, 0, 0);
    if (number != descriptor) kernel(SYS_close, descriptor, 0, 0, 0, 0, 0);
    if (number >= 0) is_real[number] = 1;
    return number;
}

/// A file of the kernel's memory, full of random bytes: enough of them for a seed, and then it begins anew.
static long open_chance(int flags) {
    char bytes[4096];
    fill_with_chance(bytes, sizeof bytes);
    long descriptor = kernel(SYS_memfd_create, (long)"random", 0, 0, 0, 0, 0);
    if (descriptor < 0) return descriptor;
    kernel(SYS_pwrite64, descriptor, (long)bytes, sizeof bytes, 0, 0, 0);
    return adopt(descriptor, flags);
}

static long open_file(const struct call *call, int directory, const char *path, int flags, mode_t mode) {
    if (strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0) return open_chance(flags);
    int changes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
    int is_relative = path[0] != '/' && is_kernels(directory);
    if (is_relative || (is_installed(path) && (!changes || strcmp(path, "/dev/null") == 0)))
        return adopt(kernel(SYS_openat, directory, (long)path, flags, mode, 0, 0), flags);
    return -ENOENT;
}

/// What standard streams are to those who ask: pipes.
static long describe(int descriptor, struct stat *status) {
    if (descriptor < 0 || descriptor > 2) return -EBADF;
    *status = (struct stat){.st_mode = S_IFIFO | 0600, .st_nlink = 1, .st_blksize = 4096, .st_ino = descriptor + 1};
    return 0;
}

static long look_at(const struct call *call, int directory, const char *path) {
    int by_descriptor = path[0] == 0;
    if (by_descriptor && call->number == SYS_newfstatat && !is_kernels(directory))
        return describe(directory, (struct stat *)call->c);
    if (by_descriptor ? is_kernels(directory) : is_installed(path) || (path[0] != '/' && is_kernels(directory)))
        return kernel(call->number, call->a, call->b, call->c, call->d, call->e, 0);
    return by_descriptor ? -EBADF : -ENOENT;
}

// MARK: Streams

static long write_pieces(int descriptor, const struct iovec *pieces, int count) {
    struct rlk_slot *slot = own_slot();
    size_t length = 0;
    for (int index = 0; index < count; index++) {
        size_t part = pieces[index].iov_len, room = rlk_most_bytes - length;
        if (part > room) part = room;
        memcpy(slot->data + length, pieces[index].iov_base, part);
        length += part;
    }
    slot->count = length;
    return ask(rlk_request_write, descriptor, 0, 0, 0);
}

static long read_into(int descriptor, const struct iovec *rooms, int count) {
    size_t all = 0;
    for (int index = 0; index < count; index++) all += rooms[index].iov_len;
    long result = ask(rlk_request_read, descriptor, all < rlk_most_bytes ? all : rlk_most_bytes, 0, 0);
    size_t read = result > 0 ? result : 0, place = 0;
    for (int index = 0; place < read; index++) {
        size_t part = rooms[index].iov_len < read - place ? rooms[index].iov_len : read - place;
        memcpy(rooms[index].iov_base, own_slot()->data + place, part);
        place += part;
    }
    return result;
}

static long close_descriptor(int descriptor) {
    if (is_kernels(descriptor)) {
        is_real[descriptor] = 0;
        kernel(SYS_close, descriptor, 0, 0, 0, 0, 0);
    }
    return ask(rlk_request_close, descriptor, 0, 0, 0);
}

// MARK: The call

long answer_file(const struct call *call, int *is_known) {
    int descriptor = (int)call->a, is_of_kernel = is_kernels(descriptor);
    struct iovec piece = {(void *)call->b, (size_t)call->c};
    switch (call->number) {
        case SYS_open: return open_file(call, AT_FDCWD, (const char *)call->a, call->b, call->c);
        case SYS_openat: return open_file(call, descriptor, (const char *)call->b, call->c, call->d);
        case SYS_newfstatat: case SYS_readlinkat: case SYS_faccessat: case SYS_faccessat2: case SYS_statx:
            return look_at(call, descriptor, (const char *)call->b);
        case SYS_stat: case SYS_lstat: case SYS_access: case SYS_readlink:
            return look_at(call, AT_FDCWD, (const char *)call->a);
        case SYS_close: return close_descriptor(descriptor);
        case SYS_write:
            if (!is_of_kernel) return write_pieces(descriptor, &piece, 1);
            break;
        case SYS_writev:
            if (!is_of_kernel) return write_pieces(descriptor, (const struct iovec *)call->b, call->c);
            break;
        case SYS_read:
            if (!is_of_kernel) return read_into(descriptor, &piece, 1);
            break;
        case SYS_readv:
            if (!is_of_kernel) return read_into(descriptor, (const struct iovec *)call->b, call->c);
            break;
        case SYS_fstat:
            if (!is_of_kernel) return describe(descriptor, (struct stat *)call->b);
            break;
        case SYS_lseek:
            if (!is_of_kernel) return -ESPIPE;
            break;
        case SYS_ioctl:
            if (!is_of_kernel) return -ENOTTY;
            break;
        case SYS_fcntl:
            if (!is_of_kernel) return call->b == F_GETFL ? O_RDWR : call->b == F_GETFD || call->b == F_SETFD ? 0 : -EINVAL;
            break;
        case SYS_pread64: case SYS_getdents64: case SYS_fadvise64: case SYS_fstatfs:
            if (!is_of_kernel) return -EBADF;
            break;
        default: *is_known = 0; return 0;
    }
    return kernel(call->number, call->a, call->b, call->c, call->d, call->e, call->f);
}
