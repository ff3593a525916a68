#include "preload.h"

#if defined(__x86_64__)

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

// Children. A process with memory of its own is one for the kernel, too. As `vfork` has it, another child shares the
// memory of its parent until it runs another program, while the thread that has made it rests. So that thread makes the
// child's few calls itself, and goes back to where the child began when they are over.

/// The state of the process to which the thread goes back.
static struct {
    int is_on;
    gregset_t registers;
    uint64_t blocked, handled, ignored;
    int32_t process, parent;
    uint32_t mask;
    uint8_t closes_on_exec[rlk_most_descriptors];
} parent;

int is_child(void) { return parent.is_on; }

/// Begins a child, on a stack of its own if there is one.
static long begin_child(const struct call *call, uint64_t stack) {
    ucontext_t *context = call->context;
    // Another thread may be about to run a program.
    while (parent.is_on) ask(rlk_request_sleep, rlk_clock_monotonic, 0, 0, 0);
    long child = ask(rlk_request_begin_child, 0, 0, 0, 0);
    if (child < 0) return child;
    memcpy(parent.registers, context->uc_mcontext.gregs, sizeof parent.registers);
    memcpy(&parent.blocked, &context->uc_sigmask, 8);
    memcpy(parent.closes_on_exec, page->closes_on_exec, sizeof parent.closes_on_exec);
    parent.handled = page->handled, parent.ignored = page->ignored;
    parent.process = page->process, parent.parent = page->parent, parent.mask = page->mask;
    parent.is_on = 1;
    page->parent = page->process, page->process = child;
    if (stack) context->uc_mcontext.gregs[REG_RSP] = stack;
    return 0;
}

/// Goes back to the parent. Returns the child's number, as the call that has made the child does.
static long go_back(const struct call *call) {
    ucontext_t *context = call->context;
    long child = page->process;
    memcpy(context->uc_mcontext.gregs, parent.registers, sizeof parent.registers);
    memcpy(&context->uc_sigmask, &parent.blocked, 8);
    memcpy(page->closes_on_exec, parent.closes_on_exec, sizeof parent.closes_on_exec);
    page->handled = parent.handled, page->ignored = parent.ignored;
    page->process = parent.process, page->parent = parent.parent, page->mask = parent.mask;
    parent.is_on = 0;
    return child;
}

/// Goes on in a new process, with its own page in the place of its parent's, as soon as it has its turn.
static void enter_process(long memory, int32_t *number) {
    long file = open_of_simulation(memory);
    if (file < 0) kernel(SYS_exit_group, 1, 0, 0, 0, 0, 0);
    kernel(SYS_mmap, (long)page, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    kernel(SYS_close, file, 0, 0, 0, 0, 0);
    forget_threads();
    page->real_process = kernel(SYS_getpid, 0, 0, 0, 0, 0, 0);
    page->slots[0].real_number = kernel(SYS_gettid, 0, 0, 0, 0, 0, 0);
    catch_calls();
    await_turn(own_slot());
    if (number) *number = page->process;
}

/// Makes a process with memory of its own, whose parent for the kernel is the simulation.
static long fork_process(const struct clone_args *arguments) {
    const uint64_t known = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID | CSIGNAL;
    if (arguments->flags & ~known || arguments->stack) {
        escape("starts a process in a way of its own", -1);
        return -EINVAL;
    }
    long child = ask(rlk_request_begin_fork, 0, 0, 0, 0);
    if (child < 0) return child;
    int memory;
    memcpy(&memory, own_slot()->data, sizeof memory);
    long real = kernel(SYS_clone, CLONE_PARENT, 0, 0, 0, 0, 0);
    if (real == 0) {
        enter_process(memory, arguments->flags & CLONE_CHILD_SETTID ? (int32_t *)arguments->child_tid : NULL);
        return 0;
    }
    long result = ask(rlk_request_end_fork, child, real, 0, 0);
    if (result < 0) return result;
    if (arguments->flags & CLONE_PARENT_SETTID) *(int32_t *)arguments->parent_tid = child;
    return child;
}

long make_process(const struct call *call, const struct clone_args *arguments) {
    const uint64_t sharing = CLONE_VM | CLONE_VFORK;
    if (call->number == SYS_vfork) return begin_child(call, 0);
    int shares = (arguments->flags & sharing) == sharing && !(arguments->flags & CLONE_PIDFD);
    return shares ? begin_child(call, arguments->stack + arguments->stack_size) : fork_process(arguments);
}

static long end_child(const struct call *call) {
    ask(rlk_request_end_child, call->a & 0xff, 0, 0, 0);
    return go_back(call);
}

// MARK: Programs

/// Adds texts to the data of a request. Returns their number, or an error number.
static long add_texts(const char *const *texts) {
    const size_t most = rlk_most_bytes - 4096;
    struct rlk_slot *slot = own_slot();
    long count = 0;
    for (; texts && texts[count]; count++) {
        size_t length = strlen(texts[count]) + 1;
        if (slot->count + length > most) return -E2BIG;
        memcpy(slot->data + slot->count, texts[count], length);
        slot->count += length;
    }
    return count;
}

static long
run_program(const struct call *call, const char *path, const char *const *arguments, const char *const *variables) {
    const char *const paths[] = {path, NULL};
    own_slot()->count = 0;
    long result = add_texts(paths);
    long count = result < 0 ? result : add_texts(arguments);
    long variable_count = count < 0 ? count : add_texts(variables);
    if (variable_count < 0) return variable_count;
    result = ask(rlk_request_execute, 0, count, variable_count, 0);
    // A process that runs the program itself does not come here.
    return result < 0 ? result : go_back(call);
}

// MARK: The ends of children

/// The end of a child, in the data of a request.
struct end {
    int32_t code, value;
    uint32_t user;
};

static long await_child(idtype_t kind, id_t number, int options, struct end *end) {
    long result = ask(rlk_request_await_child, kind, number, !!(options & WNOHANG) | (options & WNOWAIT ? 2 : 0), 0);
    if (result > 0) memcpy(end, own_slot()->data, sizeof *end);
    return result;
}

static long answer_wait(int32_t number, int *status, int options, void *usage) {
    struct end end;
    idtype_t kind = number > 0 ? P_PID : number == -1 ? P_ALL : P_PGID;
    // A number in a group of 0 is the caller's own.
    long result = await_child(kind, number < -1 ? -number : number, options, &end);
    if (result > 0 && status) *status = end.code == CLD_EXITED ? end.value << 8 : end.value;
    if (result > 0 && usage) memset(usage, 0, sizeof(struct rusage));
    return result;
}

static long answer_wait_with_facts(idtype_t kind, id_t number, siginfo_t *info, int options, void *usage) {
    struct end end;
    if (!(options & (WEXITED | WSTOPPED | WCONTINUED))) return -EINVAL;
    long result = await_child(kind, number, options, &end);
    if (result < 0) return result;
    if (info) {
        info->si_signo = result > 0 ? SIGCHLD : 0;
        info->si_errno = 0, info->si_code = result > 0 ? end.code : 0;
        info->si_pid = result, info->si_uid = result > 0 ? end.user : 0, info->si_status = result > 0 ? end.value : 0;
    }
    if (result > 0 && usage) memset(usage, 0, sizeof(struct rusage));
    return 0;
}

// MARK: Descriptors

/// Notes whether a new descriptor is closed when its process runs another program.
static void note_descriptor(long descriptor, int flags) {
    if (descriptor >= 0 && descriptor < rlk_most_descriptors) page->closes_on_exec[descriptor] = !!(flags & O_CLOEXEC);
}

static void note_both(const int *descriptors, int flags) {
    note_descriptor(descriptors[0], flags);
    note_descriptor(descriptors[1], flags);
}

static long note_for_fcntl(const struct call *call, long result) {
    int descriptor = call->a, is_known = descriptor >= 0 && descriptor < rlk_most_descriptors;
    switch (call->b) {
        case F_DUPFD: note_descriptor(result, 0); return result;
        case F_DUPFD_CLOEXEC: note_descriptor(result, O_CLOEXEC); return result;
        case F_SETFD: note_descriptor(descriptor, call->c & FD_CLOEXEC ? O_CLOEXEC : 0); return result;
        case F_GETFD: return is_known && page->closes_on_exec[descriptor] ? FD_CLOEXEC : 0;
        default: return result;
    }
}

long note_descriptors(const struct call *call, long result) {
    enum { pidfd_open = 434 };
    if (result < 0) return result;
    switch (call->number) {
        case SYS_open: case SYS_accept4: case SYS_signalfd4:
            note_descriptor(result, call->number == SYS_open ? call->b : call->d);
            return result;
        case SYS_openat: case SYS_dup3: note_descriptor(result, call->c); return result;
        case SYS_creat: case SYS_accept: case SYS_dup: case SYS_eventfd: case SYS_epoll_create: case SYS_signalfd:
            note_descriptor(result, 0);
            return result;
        case SYS_dup2:
            if (call->a != call->b) note_descriptor(result, 0);
            return result;
        case SYS_socket: case SYS_eventfd2: case SYS_timerfd_create: case SYS_memfd_create:
            note_descriptor(result, call->b);
            return result;
        case SYS_epoll_create1: case SYS_inotify_init1: note_descriptor(result, call->a); return result;
        case pidfd_open: note_descriptor(result, O_CLOEXEC); return result;
        case SYS_pipe: note_both((const int *)call->a, 0); return result;
        case SYS_pipe2: note_both((const int *)call->a, call->b); return result;
        case SYS_socketpair: note_both((const int *)call->d, call->b); return result;
        case SYS_fcntl: return note_for_fcntl(call, result);
        case SYS_ioctl:
            if (call->b == FIOCLEX || call->b == FIONCLEX) note_descriptor(call->a, call->b == FIOCLEX ? O_CLOEXEC : 0);
            return result;
        default: return result;
    }
}

static long close_range_of(unsigned first, unsigned last, unsigned flags) {
    enum { sets_flag = 4 };
    if (first > last) return -EINVAL;
    if (!(flags & sets_flag)) return close_descriptors(first, last);
    for (unsigned descriptor = first; descriptor <= last && descriptor < rlk_most_descriptors; descriptor++)
        page->closes_on_exec[descriptor] = 1;
    return 0;
}

// MARK: The call

long answer_child(const struct call *call, int *is_known) {
    enum { pidfd_send_signal = 424, pidfd_open = 434 };
    switch (call->number) {
        case SYS_exit: case SYS_exit_group:
            if (is_child()) return end_child(call);
            break;
        case SYS_execve:
            return run_program(
                call, (const char *)call->a, (const char *const *)call->b, (const char *const *)call->c);
        case SYS_wait4: return answer_wait(call->a, (int *)call->b, call->c, (void *)call->d);
        case SYS_waitid:
            return answer_wait_with_facts(call->a, call->b, (siginfo_t *)call->c, call->d, (void *)call->e);
        case SYS_setpgid: return ask(rlk_request_set_group, call->a, call->b, 0, 0);
        case SYS_setsid: return ask(rlk_request_set_group, 0, 0, 1, 0);
        case SYS_getpgid: return ask(rlk_request_group, call->a, 0, 0, 0);
        case SYS_getpgrp: return ask(rlk_request_group, 0, 0, 0, 0);
        case SYS_getsid: return ask(rlk_request_group, call->a, 1, 0, 0);
        case pidfd_open: return ask(rlk_request_open_process, 0, call->a, 0, 0);
        case pidfd_send_signal: return ask(rlk_request_signal_process, call->a, call->b, 0, 0);
        case SYS_close_range: return close_range_of(call->a, call->b, call->c);
        default: break;
    }
    *is_known = 0;
    return 0;
}

#endif
