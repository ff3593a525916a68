#include "preload.h"

#if defined(__x86_64__)

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

// Files. Those of the machine's installation, which are the same for all hosts and runs, are the kernel's, under the
// numbers that the simulation has for them. Others are those of the simulated host.

/// 1 for a descriptor of the kernel's.
static unsigned char is_real[rlk_most_descriptors];

static int is_kernels(int descriptor) {
    return descriptor >= 0 && descriptor < rlk_most_descriptors && is_real[descriptor];
}

static int begins(const char *path, const char *start) {
    while (*start)
        if (*path++ != *start++) return 0;
    return 1;
}

/// Returns 1 if a file belongs to the installation of the machine, or to the program, so that each run finds the same.
static int is_installed(const char *path) {
    static const char folders[][24] = {
        "/usr/", "/lib", "/bin/", "/sys/devices/system", "/etc/ld.so", "/etc/localtime", "/etc/ssl/", "/opt/",
        "/proc/self/exe", "/proc/self/maps", "/dev/null"};
    for (size_t index = 0; index < sizeof folders / sizeof *folders; index++)
        if (begins(path, folders[index])) return 1;
    return begins(path, page->program_folder) || strcmp(path, "/usr") == 0;
}

/// Gives a file of the kernel the number that the simulation has for it.
static long adopt(long descriptor, int flags) {
    if (descriptor < 0) return descriptor;
    long number = ask(rlk_request_adopt, 0, 0, 0, 0);
    if (number >= rlk_most_descriptors) number = -EMFILE;
    if (number >= 0 && number != descriptor) kernel(SYS_dup3, descriptor, number, flags & O_CLOEXEC, 0, 0, 0);
    if (number != descriptor) kernel(SYS_close, descriptor, 0, 0, 0, 0, 0);
    if (number >= 0) is_real[number] = 1;
    return number;
}

/// Enough bytes for the seeds of a program; then the file is at its end.
static long open_chance(int flags) {
    char bytes[4096];
    fill_with_chance(bytes, sizeof bytes);
    long descriptor = kernel(SYS_memfd_create, (long)"random", 0, 0, 0, 0, 0);
    if (descriptor >= 0) kernel(SYS_pwrite64, descriptor, (long)bytes, sizeof bytes, 0, 0, 0);
    return adopt(descriptor, flags);
}

// MARK: Paths

/// Asks about a path that belongs to a directory, or about the directory if the path is empty.
static long ask_about(enum rlk_request request, int directory, const char *path, int64_t b, int64_t c, int64_t d) {
    struct rlk_slot *slot = own_slot();
    size_t length = strlen(path);
    if (length >= 4096) return -ENAMETOOLONG;
    memcpy(slot->data, path, length);
    slot->count = length;
    return ask(request, directory, b, c, d);
}

static int is_relative_to_kernels(int directory, const char *path) { return path[0] != '/' && is_kernels(directory); }

static long open_file(int directory, const char *path, int flags, mode_t mode) {
    if (strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0) return open_chance(flags);
    int changes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC), is_null = strcmp(path, "/dev/null") == 0;
    // A child would not have such a file in the program that it runs.
    if (!is_child() && !is_null && (is_relative_to_kernels(directory, path) || (is_installed(path) && !changes)))
        return adopt(kernel(SYS_openat, directory, (long)path, flags, mode, 0, 0), flags);
    return ask_about(rlk_request_open, directory, path, flags, mode & 07777 & ~page->mask, 0);
}

static struct timespec time_of(int64_t nanoseconds) {
    const int64_t second = 1000000000;
    int64_t rest = (nanoseconds % second + second) % second;
    return (struct timespec){(nanoseconds - rest) / second, rest};
}

static struct statx_timestamp long_time_of(int64_t nanoseconds) {
    struct timespec time = time_of(nanoseconds);
    return (struct statx_timestamp){.tv_sec = time.tv_sec, .tv_nsec = time.tv_nsec};
}

/// Describes a path. `flags` are those of `fstatat`.
static long describe(int directory, const char *path, int flags, struct stat *status) {
    long result = ask_about(rlk_request_status, directory, path, !!(flags & AT_SYMLINK_NOFOLLOW), 0, 0);
    if (result < 0) return result;
    struct rlk_status found;
    memcpy(&found, own_slot()->data, sizeof found);
    *status = (struct stat){
        .st_dev = 1, .st_ino = found.number, .st_mode = found.mode, .st_nlink = found.names, .st_uid = found.user,
        .st_gid = found.group, .st_size = found.size, .st_blksize = 4096, .st_blocks = (found.size + 4095) / 4096 * 8,
        .st_atim = time_of(found.read), .st_mtim = time_of(found.written), .st_ctim = time_of(found.changed)};
    return 0;
}

static long describe_more(int directory, const char *path, int flags, struct statx *status) {
    struct stat found;
    long result = describe(directory, path, flags, &found);
    if (result < 0) return result;
    struct rlk_status facts;
    memcpy(&facts, own_slot()->data, sizeof facts);
    *status = (struct statx){
        .stx_mask = STATX_BASIC_STATS, .stx_blksize = 4096, .stx_nlink = found.st_nlink, .stx_uid = found.st_uid,
        .stx_gid = found.st_gid, .stx_mode = found.st_mode, .stx_ino = found.st_ino, .stx_size = found.st_size,
        .stx_blocks = found.st_blocks, .stx_dev_minor = 1, .stx_atime = long_time_of(facts.read),
        .stx_mtime = long_time_of(facts.written), .stx_ctime = long_time_of(facts.changed)};
    return 0;
}

static long read_link(int directory, const char *path, char *room, size_t size) {
    if (size == 0) return -EINVAL;
    long length = ask_about(rlk_request_read_link, directory, path, 0, 0, 0);
    if (length > (long)size) length = size;
    if (length > 0) memcpy(room, own_slot()->data, length);
    return length;
}

/// The flags of a call that looks at a path; -1 if it has none.
static int flags_of(const struct call *call) {
    switch (call->number) {
        case SYS_newfstatat: case SYS_faccessat2: return call->d;
        case SYS_statx: return call->c;
        case SYS_lstat: return AT_SYMLINK_NOFOLLOW;
        default: return 0;
    }
}

static long look_at(const struct call *call, int directory, const char *path) {
    int flags = flags_of(call), has_flag = flags & AT_EMPTY_PATH;
    if (!path) path = "";
    if (path[0] == 0 && !has_flag) return -ENOENT;
    if (path[0] == 0 && directory == AT_FDCWD) path = ".";
    int by_descriptor = path[0] == 0;
    if (by_descriptor ? is_kernels(directory) : is_installed(path) || is_relative_to_kernels(directory, path))
        return kernel(call->number, call->a, call->b, call->c, call->d, call->e, 0);
    switch (call->number) {
        case SYS_newfstatat: return describe(directory, path, flags, (struct stat *)call->c);
        case SYS_stat: case SYS_lstat: return describe(directory, path, flags, (struct stat *)call->b);
        case SYS_statx: return describe_more(directory, path, flags, (struct statx *)call->e);
        case SYS_readlink: return read_link(directory, path, (char *)call->b, call->c);
        case SYS_readlinkat: return read_link(directory, path, (char *)call->c, call->d);
        case SYS_access: return ask_about(rlk_request_access, directory, path, !!(flags & AT_SYMLINK_NOFOLLOW), call->b, 0);
        default: return ask_about(rlk_request_access, directory, path, !!(flags & AT_SYMLINK_NOFOLLOW), call->c, 0);
    }
}

/// Asks about two paths, each of which belongs to a directory.
static long ask_about_two(
    enum rlk_request request, int directory, const char *path, int other_directory, const char *other, int64_t c) {
    struct rlk_slot *slot = own_slot();
    size_t length = strlen(path), other_length = strlen(other);
    if (length >= 4096 || other_length >= 4096) return -ENAMETOOLONG;
    memcpy(slot->data, path, length + 1);
    memcpy(slot->data + length + 1, other, other_length);
    slot->count = length + 1 + other_length;
    return ask(request, directory, other_directory, c, 0);
}

static long add_name(int directory, const char *path, int other_directory, const char *other, int flags) {
    if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_FOLLOW)) return -EINVAL;
    if (path[0] == 0 && !(flags & AT_EMPTY_PATH)) return -ENOENT;
    return ask_about_two(
        rlk_request_add_name, directory, path, other_directory, other, !!(flags & AT_SYMLINK_FOLLOW));
}

static int64_t time_for(const struct timespec *time) {
    if (time->tv_nsec == UTIME_NOW) return rlk_time_now;
    return time->tv_nsec == UTIME_OMIT ? rlk_time_same : time->tv_sec * 1000000000 + time->tv_nsec;
}

/// Sets the times of a path, or of the descriptor if there is no path.
static long set_times(int directory, const char *path, const struct timespec *times, int flags) {
    int64_t read = times ? time_for(&times[0]) : rlk_time_now, written = times ? time_for(&times[1]) : rlk_time_now;
    if (path && path[0] == 0 && !(flags & AT_EMPTY_PATH)) return -ENOENT;
    return ask_about(
        rlk_request_set_times, directory, path ? path : "", read, written, !!(flags & AT_SYMLINK_NOFOLLOW));
}

// MARK: Open files

struct entry {
    uint64_t number;
    int64_t next;
    unsigned short length;
    unsigned char kind;
    char name[];
};

static long list_names(int descriptor, char *room, size_t size) {
    long place = ask(rlk_request_seek, descriptor, 0, SEEK_CUR, 0), used = 0, entries = 0;
    if (place < 0) return place == -ESPIPE ? -ENOTDIR : place;
    long count = ask(rlk_request_names, descriptor, place, 0, 0);
    if (count < 0) return count;
    const char *data = own_slot()->data;
    for (const char *next = data; next < data + count;) {
        struct rlk_name facts;
        memcpy(&facts, next, sizeof facts);
        const char *name = next + sizeof facts;
        size_t length = strlen(name), whole = (offsetof(struct entry, name) + length + 1 + 7) & ~7ul;
        if (used + whole > size) break;
        struct entry *entry = (struct entry *)(room + used);
        entries += 1;
        *entry = (struct entry){facts.number, place + entries, whole, facts.kind};
        memcpy(entry->name, name, length + 1);
        used += whole;
        next = name + length + 1;
    }
    if (used == 0 && count > 0) return -EINVAL;
    ask(rlk_request_seek, descriptor, place + entries, SEEK_SET, 0);
    return used;
}

static long read_at(int descriptor, void *room, size_t size, int64_t offset) {
    long result = ask(rlk_request_read_at, descriptor, size < rlk_most_bytes ? size : rlk_most_bytes, offset, 0);
    if (result > 0) memcpy(room, own_slot()->data, result);
    return result;
}

static long write_at(int descriptor, const void *bytes, size_t size, int64_t offset) {
    struct rlk_slot *slot = own_slot();
    slot->count = size < rlk_most_bytes ? size : rlk_most_bytes;
    memcpy(slot->data, bytes, slot->count);
    return ask(rlk_request_write_at, descriptor, offset, 0, 0);
}

/// Reads or writes pieces of memory at an offset.
static long
transfer_at(int descriptor, const struct iovec *pieces, size_t count, int64_t offset, int is_write) {
    long done = 0;
    for (size_t index = 0; index < count; index++) {
        const struct iovec *piece = &pieces[index];
        long result = is_write ? write_at(descriptor, piece->iov_base, piece->iov_len, offset + done)
                               : read_at(descriptor, piece->iov_base, piece->iov_len, offset + done);
        if (result < 0) return done > 0 ? done : result;
        done += result;
        if ((size_t)result < piece->iov_len) break;
    }
    return done;
}

/// Maps a copy of a file of the simulation.
static long map_copy(const struct call *call) {
    if (ask(rlk_request_flags, call->e, 0, 0, 0) < 0) return -EBADF;
    long flags = (call->d & ~MAP_TYPE) | MAP_PRIVATE | MAP_ANONYMOUS;
    long memory = kernel(SYS_mmap, call->a, call->b, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory < 0 && memory > -4096) return memory;
    for (long place = 0; place < call->b;) {
        long count = read_at(call->e, (char *)memory + place, call->b - place, call->f + place);
        if (count <= 0) break;
        place += count;
    }
    kernel(SYS_mprotect, memory, call->b, call->c, 0, 0, 0);
    return memory;
}

long open_of_simulation(long descriptor) {
    char path[64];
    size_t length = append(path, 0, "/proc/");
    length = append_number(path, length, kernel(SYS_getppid, 0, 0, 0, 0, 0, 0));
    length = append(path, length, "/fd/");
    length = append_number(path, length, descriptor);
    path[length] = 0;
    return kernel(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0);
}

/// Maps memory that the program has in common with the simulation, and with other programs of the host.
static long map_shared(const struct call *call) {
    long descriptor = ask(rlk_request_share, call->e, call->c, 0, 0);
    // The simulation's own texts are only read.
    if (descriptor == -ENODEV && !(call->c & PROT_WRITE)) return map_copy(call);
    if (descriptor < 0) return descriptor;
    long opened = open_of_simulation(descriptor);
    if (opened < 0) return opened;
    long memory = kernel(SYS_mmap, call->a, call->b, call->c, call->d, opened, call->f);
    kernel(SYS_close, opened, 0, 0, 0, 0, 0);
    if (memory > 0 || memory < -4095) ask(rlk_request_note_mapping, call->e, memory, call->b, 0);
    return memory;
}

/// Locks a part of a file, or finds a lock in its way.
static long lock_part(int descriptor, struct flock *lock, enum rlk_lock_use use) {
    struct rlk_slot *slot = own_slot();
    struct rlk_part_lock part = {lock->l_type, lock->l_whence, lock->l_start, lock->l_len, lock->l_pid, use};
    memcpy(slot->data, &part, sizeof part);
    slot->count = sizeof part;
    long result = ask(rlk_request_lock_part, descriptor, 0, 0, 0);
    if (result < 0 || (use & ~rlk_lock_of_file) != rlk_lock_asks) return result;
    memcpy(&part, slot->data, sizeof part);
    lock->l_type = part.kind;
    if (part.kind == F_UNLCK) return 0;
    lock->l_whence = part.origin, lock->l_start = part.start, lock->l_len = part.length, lock->l_pid = part.process;
    return 0;
}

/// Answers the operations of `fcntl` on locks.
static long control_locks(int descriptor, int operation, struct flock *lock, int *is_known) {
    switch (operation) {
        case F_GETLK: return lock_part(descriptor, lock, rlk_lock_asks);
        case F_SETLK: return lock_part(descriptor, lock, rlk_lock_tries);
        case F_SETLKW: return lock_part(descriptor, lock, rlk_lock_waits);
        case F_OFD_GETLK: return lock_part(descriptor, lock, rlk_lock_asks | rlk_lock_of_file);
        case F_OFD_SETLK: return lock_part(descriptor, lock, rlk_lock_tries | rlk_lock_of_file);
        case F_OFD_SETLKW: return lock_part(descriptor, lock, rlk_lock_waits | rlk_lock_of_file);
        default: *is_known = 0; return 0;
    }
}

/// Closes a descriptor of the kernel's, which a child has in common with its parent.
static void close_of_kernel(int descriptor) {
    if (!is_kernels(descriptor) || is_child()) return;
    is_real[descriptor] = 0;
    kernel(SYS_close, descriptor, 0, 0, 0, 0, 0);
}

static long close_descriptor(int descriptor) {
    close_of_kernel(descriptor);
    return ask(rlk_request_close, descriptor, 0, 0, 0);
}

long close_descriptors(unsigned first, unsigned last) {
    for (unsigned descriptor = first; descriptor <= last && descriptor < rlk_most_descriptors; descriptor++)
        close_of_kernel(descriptor);
    return ask(rlk_request_close_range, first, last, 0, 0);
}

/// Duplicates a descriptor as another one, of which one is the kernel's.
static long duplicate(int descriptor, int other, int flags) {
    if (descriptor == other) return other;
    long result = ask(rlk_request_duplicate, descriptor, other, 1, 0);
    if (result < 0 || is_child()) return result;
    close_of_kernel(other);
    if (!is_kernels(descriptor)) return result;
    kernel(SYS_dup3, descriptor, other, flags, 0, 0, 0);
    is_real[other] = 1;
    return result;
}

// MARK: The call

/// Calls on a file that is the kernel's.
static int is_of_file(long number) {
    switch (number) {
        case SYS_write: case SYS_writev: case SYS_read: case SYS_readv: case SYS_pread64: case SYS_preadv: case SYS_lseek:
        case SYS_fstat: case SYS_fstatfs: case SYS_getdents64: case SYS_fadvise64: case SYS_ioctl: case SYS_fcntl: case SYS_fsync:
        case SYS_fdatasync: case SYS_flock:
            return 1;
        default: return 0;
    }
}

static long find_directory(char *room, size_t size) {
    long length = ask(rlk_request_directory, 0, 0, 0, 0);
    if (length > (long)size) return -ERANGE;
    if (length > 0) memcpy(room, own_slot()->data, length);
    return length;
}

static long make_directory(int directory, const char *path, mode_t mode) {
    return ask_about(rlk_request_make_directory, directory, path, mode & 01777 & ~page->mask, 0, 0);
}

static long set_mask(mode_t mask) {
    mode_t former = page->mask;
    page->mask = mask & 0777;
    return former;
}

/// Makes another call in place of the program.
static long make(const struct call *call, long number, long a, const void *b, long c, long d) {
    const struct call own = {number, a, (long)b, c, d, 0, 0, call->context};
    return answer(&own);
}

/// Copies bytes of a file, from a place or from the file's own one, to another descriptor.
static long
copy_file(const struct call *call, int file, int64_t *place, int other, int64_t *other_place, size_t count) {
    char bytes[16384];
    size_t copied = 0;
    int64_t from = place ? *place : make(call, SYS_lseek, file, NULL, SEEK_CUR, 0);
    long result = from == -ESPIPE ? -EINVAL : from < 0 ? from : 0;
    while (result >= 0 && copied < count) {
        size_t rest = count - copied, part = rest < sizeof bytes ? rest : sizeof bytes;
        long found = result = make(call, SYS_pread64, file, bytes, part, from);
        if (found <= 0) break;
        result = other_place ? make(call, SYS_pwrite64, other, bytes, found, *other_place)
                             : make(call, SYS_write, other, bytes, found, 0);
        if (result <= 0) break;
        copied += result, from += result;
        if (other_place) *other_place += result;
        if (result < found) break;
    }
    if (place) *place = from;
    else if (copied > 0) make(call, SYS_lseek, file, (void *)from, SEEK_SET, 0);
    return copied > 0 ? (long)copied : result;
}

/// Calls on open files of the simulation.
static long change_open_file(const struct call *call, int *is_known) {
    int descriptor = (int)call->a;
    switch (call->number) {
        case SYS_pread64: return read_at(descriptor, (void *)call->b, call->c, call->d);
        case SYS_pwrite64: return write_at(descriptor, (const void *)call->b, call->c, call->d);
        case SYS_preadv: case SYS_preadv2: return transfer_at(descriptor, (const struct iovec *)call->b, call->c, call->d, 0);
        case SYS_pwritev: case SYS_pwritev2: return transfer_at(descriptor, (const struct iovec *)call->b, call->c, call->d, 1);
        case SYS_lseek: return ask(rlk_request_seek, descriptor, call->b, call->c, 0);
        case SYS_ftruncate: return ask(rlk_request_truncate, descriptor, call->b, 0, 0);
        case SYS_fsync: case SYS_fdatasync: return ask(rlk_request_sync, descriptor, 0, 0, 0);
        case SYS_flock: return ask(rlk_request_lock, descriptor, call->b, 0, 0);
        case SYS_getdents64: return list_names(descriptor, (char *)call->b, call->c);
        case SYS_fadvise64: return 0;
        case SYS_fallocate: return ask(rlk_request_allocate, descriptor, call->b, call->c, call->d);
        case SYS_sendfile: return copy_file(call, call->b, (int64_t *)call->c, call->a, NULL, call->d);
        case SYS_copy_file_range:
            if (call->f != 0) return -EINVAL;
            return copy_file(call, call->a, (int64_t *)call->b, call->c, (int64_t *)call->d, call->e);
        case SYS_fcntl: return control_locks(descriptor, call->b, (struct flock *)call->c, is_known);
        case SYS_mmap:
            if (call->f & 4095) return -EINVAL;
            if (call->d & MAP_ANONYMOUS || is_kernels(call->e))
                return kernel(call->number, call->a, call->b, call->c, call->d, call->e, call->f);
            return (call->d & MAP_TYPE) == MAP_PRIVATE ? map_copy(call) : map_shared(call);
        case SYS_msync: return ask(rlk_request_sync_memory, call->a, call->b, 0, 0);
        default: *is_known = 0; return 0;
    }
}

/// Calls that change paths, or on open files of the simulation.
static long change_files(const struct call *call, int *is_known) {
    int descriptor = (int)call->a;
    const char *first = (const char *)call->a, *second = (const char *)call->b, *fourth = (const char *)call->d;
    switch (call->number) {
        case SYS_mkdir: return make_directory(AT_FDCWD, first, call->b);
        case SYS_mkdirat: return make_directory(descriptor, second, call->c);
        case SYS_unlink: return ask_about(rlk_request_remove, AT_FDCWD, first, 0, 0, 0);
        case SYS_rmdir: return ask_about(rlk_request_remove, AT_FDCWD, first, 1, 0, 0);
        case SYS_unlinkat: return ask_about(rlk_request_remove, descriptor, second, !!(call->c & AT_REMOVEDIR), 0, 0);
        case SYS_rename: return ask_about_two(rlk_request_rename, AT_FDCWD, first, AT_FDCWD, second, 0);
        case SYS_renameat: return ask_about_two(rlk_request_rename, descriptor, second, call->c, fourth, 0);
        case SYS_renameat2: return ask_about_two(rlk_request_rename, descriptor, second, call->c, fourth, call->e);
        case SYS_link: return add_name(AT_FDCWD, first, AT_FDCWD, second, 0);
        case SYS_linkat: return add_name(descriptor, second, call->c, fourth, call->e);
        case SYS_symlink: return ask_about_two(rlk_request_make_link, AT_FDCWD, first, AT_FDCWD, second, 0);
        case SYS_symlinkat:
            return ask_about_two(rlk_request_make_link, AT_FDCWD, first, call->b, (const char *)call->c, 0);
        case SYS_chmod: return ask_about(rlk_request_permit, AT_FDCWD, first, call->b, 0, 0);
        case SYS_fchmodat: return ask_about(rlk_request_permit, descriptor, second, call->c, 0, 0);
        case SYS_chdir: return ask_about(rlk_request_enter, AT_FDCWD, first, 0, 0, 0);
        case SYS_fchdir: return ask_about(rlk_request_enter, descriptor, "", 0, 0, 0);
        case SYS_getcwd: return find_directory((char *)call->a, call->b);
        case SYS_chown: return ask_about(rlk_request_own, AT_FDCWD, first, call->b, call->c, 0);
        case SYS_lchown: return ask_about(rlk_request_own, AT_FDCWD, first, call->b, call->c, 1);
        case SYS_fchownat:
            return ask_about(rlk_request_own, descriptor, second, call->c, call->d, !!(call->e & AT_SYMLINK_NOFOLLOW));
        case SYS_fchown: return ask_about(rlk_request_own, descriptor, "", call->b, call->c, 0);
        case SYS_fchmod: return ask_about(rlk_request_permit, descriptor, "", call->b, 0, 0);
        case SYS_utimensat: return set_times(descriptor, second, (const struct timespec *)call->c, call->d);
        // No file of a simulated disk has further attributes.
        case SYS_listxattr: case SYS_llistxattr: case SYS_flistxattr: return 0;
        case SYS_getxattr: case SYS_lgetxattr: case SYS_fgetxattr: return -ENODATA;
        case SYS_setxattr: case SYS_lsetxattr: case SYS_fsetxattr: return -EOPNOTSUPP;
        case SYS_truncate: return ask_about(rlk_request_truncate_path, AT_FDCWD, first, call->b, 0, 0);
        case SYS_umask: return set_mask(call->a);
        default: return change_open_file(call, is_known);
    }
}
long answer_file(const struct call *call, int *is_known) {
    int descriptor = (int)call->a;
    switch (call->number) {
        case SYS_open: return open_file(AT_FDCWD, (const char *)call->a, call->b, call->c);
        case SYS_creat: return open_file(AT_FDCWD, (const char *)call->a, O_CREAT | O_WRONLY | O_TRUNC, call->b);
        case SYS_openat: return open_file(descriptor, (const char *)call->b, call->c, call->d);
        case SYS_newfstatat: case SYS_readlinkat: case SYS_faccessat: case SYS_faccessat2: case SYS_statx:
            return look_at(call, descriptor, (const char *)call->b);
        case SYS_stat: case SYS_lstat: case SYS_access: case SYS_readlink:
            return look_at(call, AT_FDCWD, (const char *)call->a);
        case SYS_close: return close_descriptor(descriptor);
        case SYS_dup2: case SYS_dup3:
            if (is_kernels(descriptor) || is_kernels(call->b)) return duplicate(descriptor, call->b, call->number == SYS_dup3 ? call->c : 0);
            break;
        case SYS_dup:
            if (is_kernels(descriptor)) return adopt(kernel(SYS_dup, descriptor, 0, 0, 0, 0, 0), 0);
            break;
        case SYS_fstat:
            if (!is_kernels(descriptor)) return describe(descriptor, "", 0, (struct stat *)call->b);
            break;
        default: break;
    }
    if (!is_of_file(call->number) || !is_kernels(descriptor)) return change_files(call, is_known);
    // Duplicates of the kernel's files are rare, and would need numbers of both.
    if (call->number == SYS_fcntl && (call->b == F_DUPFD || call->b == F_DUPFD_CLOEXEC))
        return adopt(kernel(SYS_dup, descriptor, 0, 0, 0, 0, 0), 0);
    return kernel(call->number, call->a, call->b, call->c, call->d, call->e, call->f);
}

#endif
