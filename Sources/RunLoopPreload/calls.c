#include "preload.h"

#if defined(__x86_64__)

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/statfs.h>
#include <sys/times.h>
#include <sys/utsname.h>

// The answers to a program's calls.

// MARK: Steps and escapes

void count_step(void) {
    const int many = 2000;
    static int64_t date;
    static int steps;
    int64_t now = page->clocks[rlk_clock_monotonic];
    if (now != date) date = now, steps = 0;
    if (++steps < many) return;
    steps = 0;
    ask(rlk_request_rest, 0, 0, 0, 0);
}

size_t append(char *text, size_t length, const char *more) {
    for (; *more; more++) text[length++] = *more;
    return length;
}

/// Marks a moment that a test must meet in one run or another. Programs declare it as weak, and call it if it is there.
__attribute__((visibility("default"))) void runloopkit_sometimes(const char *mark) {
    if (!page) return;
    struct rlk_slot *slot = own_slot();
    size_t length = strlen(mark);
    slot->count = length < rlk_most_bytes ? length : rlk_most_bytes;
    memcpy(slot->data, mark, slot->count);
    ask(rlk_request_mark, 0, 0, 0, 0);
}

size_t append_number(char *text, size_t length, long number) {
    char digits[24];
    int count = 0;
    do digits[count++] = '0' + number % 10;
    while ((number /= 10) > 0);
    while (count > 0) text[length++] = digits[--count];
    return length;
}

void escape(const char *words, long number) {
    struct rlk_slot *slot = own_slot();
    size_t length = append(slot->data, 0, words);
    if (number >= 0) {
        length = append(slot->data, length, " ");
        length = append_number(slot->data, length, number);
    }
    slot->count = length;
    ask(rlk_request_escape, 0, 0, 0, 0);
    // A program may try again for ever.
    count_step();
}

// MARK: Facts about the process

static long copy_time(int64_t nanoseconds, struct timespec *time) {
    *time = (struct timespec){nanoseconds / 1000000000, nanoseconds % 1000000000};
    return 0;
}

static long tell_usage(struct rusage *usage) {
    int64_t now = show(CLOCK_PROCESS_CPUTIME_ID);
    *usage = (struct rusage){.ru_utime = {now / 1000000000, now % 1000000000 / 1000}};
    return 0;
}

static long tell_names(struct utsname *names) {
    *names = (struct utsname){.sysname = "Linux", .release = "6.1.0", .version = "#1", .machine = "x86_64"};
    memcpy(names->nodename, page->host_name, sizeof names->nodename);
    return 0;
}

/// A machine of 8 GiB that runs since the simulation's beginning.
static long tell_system(struct sysinfo *system) {
    const unsigned long all = 8ul << 30;
    *system = (struct sysinfo){
        .uptime = page->clocks[rlk_clock_boot] / 1000000000, .totalram = all, .freeram = all / 2, .procs = 1, .mem_unit = 1};
    return 0;
}

/// A disk of 1 TiB, half of it free.
static long tell_disk(struct statfs *disk) {
    *disk = (struct statfs){
        .f_type = 0xef53, .f_bsize = 4096, .f_frsize = 4096, .f_blocks = 1 << 28, .f_bfree = 1 << 27, .f_bavail = 1 << 27,
        .f_files = 1 << 26, .f_ffree = 1 << 25, .f_namelen = 255};
    return 0;
}

/// A machine of two processors, whatever the real one has.
static long tell_processors(size_t size, unsigned char *mask) {
    if (size < 8) return -EINVAL;
    memset(mask, 0, 8);
    mask[0] = 3;
    return 8;
}

static long pass(const struct call *call) {
    return kernel(call->number, call->a, call->b, call->c, call->d, call->e, call->f);
}

static long set_name_or_pass(const struct call *call) {
    switch (call->a) {
        case PR_SET_PDEATHSIG: return 0;
        case PR_SET_NAME: {
            struct rlk_slot *slot = own_slot();
            for (size_t index = 0; index + 1 < sizeof slot->name; index++)
                if (!(slot->name[index] = ((const char *)call->b)[index])) break;
            return pass(call);
        }
        // Another dispatch of calls, or counters of the processor.
        case 59: return -EINVAL;
        default: return pass(call);
    }
}

// MARK: The call

/// Calls about memory, and others whose answers are about the process alone.
static int is_private(long number) {
    switch (number) {
        case SYS_munmap: case SYS_mprotect: case SYS_mremap: case SYS_brk: case SYS_madvise: case SYS_mlock:
        case SYS_munlock: case SYS_mincore: case SYS_membarrier: case SYS_pkey_mprotect:
        case SYS_arch_prctl: case SYS_set_robust_list: case SYS_get_robust_list: case SYS_sigaltstack:
        case SYS_getrlimit: case SYS_getpriority: case SYS_setpriority:
        case SYS_sched_getscheduler: case SYS_sched_getparam: case SYS_sched_get_priority_max:
        case SYS_sched_get_priority_min: case SYS_capget:
            return 1;
        default: return 0;
    }
}

static long answer_known(const struct call *call) {
    int is_known = 1;
    long result = answer_child(call, &is_known);
    if (is_known) return result;
    is_known = 1;
    switch (call->number) {
        // Threads
        case SYS_futex: return answer_futex(call);
        case SYS_clone: case SYS_clone3: case SYS_fork: case SYS_vfork: return begin_thread(call);
        case SYS_exit: end_thread();
        case SYS_exit_group: ask(rlk_request_end, call->a & 0xff, 0, 0, 0); return 0;
        case SYS_gettid: return own_slot()->number;
        case SYS_getpid: return page->process;
        case SYS_getppid: return page->parent;
        case SYS_set_tid_address: own_slot()->end_word = (uint32_t *)call->a; return own_slot()->number;
        case SYS_sched_yield: count_step(); ask(rlk_request_sleep, rlk_clock_monotonic, 0, 0, 0); return 0;
        case SYS_rseq: return -ENOSYS;

        // Clocks and chance
        case SYS_clock_gettime: return copy_time(show(call->a), (struct timespec *)call->b);
        case SYS_clock_getres: return call->b ? copy_time(1, (struct timespec *)call->b) : 0;
        case SYS_nanosleep:
            return answer_sleep(CLOCK_MONOTONIC, 0, (const struct timespec *)call->a, (struct timespec *)call->b);
        case SYS_clock_nanosleep:
            return answer_sleep(
                call->a, call->b & TIMER_ABSTIME, (const struct timespec *)call->c, (struct timespec *)call->d);
        case SYS_getrandom: fill_with_chance((void *)call->a, call->b); return call->b;
        case SYS_getrusage: return tell_usage((struct rusage *)call->b);
        case SYS_times: return show(CLOCK_PROCESS_CPUTIME_ID) / 10000000;

        // Facts
        case SYS_getuid: case SYS_geteuid: return page->user;
        case SYS_getgid: case SYS_getegid: return page->group;
        case SYS_uname: return tell_names((struct utsname *)call->a);
        case SYS_sched_getaffinity: return tell_processors(call->b, (unsigned char *)call->c);
        case SYS_sysinfo: return tell_system((struct sysinfo *)call->a);
        case SYS_statfs: case SYS_fstatfs: return tell_disk((struct statfs *)call->b);
        case SYS_getcpu: if (call->a) *(unsigned *)call->a = 0; return 0;
        case SYS_prlimit64: return call->c ? 0 : pass(call);
        case SYS_prctl: return set_name_or_pass(call);

        default: break;
    }
    if (is_private(call->number)) return pass(call);
    result = answer_signal(call, &is_known);
    if (is_known) return result;
    is_known = 1;
    result = answer_file(call, &is_known);
    if (is_known) return result;
    is_known = 1;
    result = answer_stream(call, &is_known);
    if (is_known) return result;
    escape("makes the system call", call->number);
    return -ENOSYS;
}

long answer(const struct call *call) { return note_descriptors(call, answer_known(call)); }

#endif
