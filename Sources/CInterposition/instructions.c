#define _GNU_SOURCE

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "real.h"

// Instructions that call the kernel without the C library, as the runtimes of some other languages do. Linux 5.11 and later
// dispatch them to the program, on threads that ask for it, except those of one range: the C library's. They are answered as
// calls by number are.
//
// Sanitizers call the kernel themselves, in the midst of everything.

#if defined(__x86_64__) && !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

// In newer headers.
enum { set_dispatch = 59, dispatch_on = 1, is_dispatched = 2 };
enum { filter_allow = 0, filter_block = 1 };

REAL(unsigned long, getauxval, unsigned long)
REAL(long, syscall, long, long, long, long, long, long, long)

/// The code of the C library, and of the kernel's own object, which the library's functions use.
static struct range { uintptr_t start, length; } library, kernel;

static int is_in(struct range range, const void *address) { return (uintptr_t)address - range.start < range.length; }

static int find_code(struct dl_phdr_info *info, size_t size, void *address) {
    for (int index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[index];
        struct range range = {info->dlpi_addr + part->p_vaddr, part->p_memsz};
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        if (is_in(range, address)) library = range;
        if (info->dlpi_addr == kernel.start) kernel = range;
    }
    return 0;
}

static void answer(int signal, siginfo_t *info, void *context) {
    if (info->si_code != is_dispatched) {
        // A signal of another filter.
        sigaction(SIGSYS, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        raise(SIGSYS);
        return;
    }
    rlk_set_filter(filter_allow);
    int error = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    long number = info->si_syscall;
    if (number == SYS_clone || number == SYS_clone3 || number == SYS_vfork || number == SYS_rt_sigreturn) {
        // They have to be made where they are. This thread's further calls are not dispatched.
        const int length_of_instruction = 2;
        registers[REG_RIP] -= length_of_instruction;
        errno = error;
        return;
    }
    long a = registers[REG_RDI], b = registers[REG_RSI], c = registers[REG_RDX];
    long d = registers[REG_R10], e = registers[REG_R8], f = registers[REG_R9];
    int is_real = is_in(kernel, info->si_call_addr);
    long result = is_real ? real_syscall()(number, a, b, c, d, e, f) : syscall(number, a, b, c, d, e, f);
    registers[REG_RAX] = result == -1 ? -errno : result;
    errno = error;
    rlk_set_filter(filter_block);
}

static void watch(int is_simulated) {
    struct rlk_dispatch *dispatch = rlk_dispatch_of_thread();
    if (!dispatch->is_asked && is_simulated) {
        dispatch->is_asked = 1;
        prctl(set_dispatch, dispatch_on, library.start, library.length, &dispatch->filter);
    }
    rlk_set_filter(is_simulated ? filter_block : filter_allow);
}

__attribute__((constructor)) static void begin(void) {
    void *function = dlsym(RTLD_NEXT, "syscall");
    if (!function) return;
    kernel.start = real_getauxval()(AT_SYSINFO_EHDR);
    dl_iterate_phdr(find_code, function);
    if (!library.length) return;
    sigaction(SIGSYS, &(struct sigaction){.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER}, NULL);
    rlk_thread_is_simulated = watch;
}

#endif
