#include "preload.h"

#if defined(__x86_64__)

#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

// Signals. The simulation says when one comes. The thread that receives it sends it to itself by the kernel, which calls
// the program's handler where the program made its call. So a handler has the stack, the set of blocked signals and the
// way back that it has everywhere.

/// As the kernel has it.
struct action {
    void *handler;
    uint64_t flags;
    void (*restorer)(void);
    uint64_t mask;
};

extern void return_from_handler(void);

/// The flags of the handlers, by their signals.
static uint64_t flags_of[65];

static uint64_t bit(int signal) { return rlk_bit_of_signal(signal); }

/// The signals that nobody blocks. Calls are caught by one of them.
static uint64_t never_blocked(void) { return bit(SIGSYS) | bit(SIGKILL) | bit(SIGSTOP); }

/// The set that the thread blocks where it made the call, and has again after it.
static uint64_t *blocked_by(const struct call *call) { return (uint64_t *)&call->context->uc_sigmask; }

// MARK: Receiving

/// Has the kernel call a handler when the thread does not block the signal any more.
static void raise_by_kernel(const struct rlk_slot *slot, int signal) {
    siginfo_t info = {.si_signo = signal, .si_code = SI_USER, .si_pid = page->process, .si_uid = page->user};
    long process = kernel(SYS_getpid, 0, 0, 0, 0, 0, 0);
    kernel(SYS_rt_tgsigqueueinfo, process, slot->real_number, signal, (long)&info, 0, 0);
}

/// Takes the signals that have come for a thread. Returns the number of handlers that it calls; `restarts` becomes 0 if a
/// call is not to be made again after one of them.
static int receive(struct rlk_slot *slot, uint64_t blocked, int *restarts) {
    uint64_t signals = (page->pending | slot->pending) & ~blocked;
    int handlers = 0;
    if (signals == 0) return 0;
    page->pending &= ~signals;
    slot->pending &= ~signals;
    for (int signal = 1; signal <= 64; signal++) {
        if (!(signals & bit(signal))) continue;
        if (!(page->handled & bit(signal))) {
            if (!((page->ignored | rlk_harmless_signals()) & bit(signal))) ask(rlk_request_end_by_signal, signal, 0, 0, 0);
            continue;
        }
        if (!(flags_of[signal] & SA_RESTART)) *restarts = 0;
        if (flags_of[signal] & SA_RESETHAND) page->handled &= ~bit(signal);
        raise_by_kernel(slot, signal);
        handlers++;
    }
    return handlers;
}

/// Makes the call again after the handlers.
static void repeat(const struct call *call) {
    enum { size_of_call = 2 };
    call->context->uc_mcontext.gregs[REG_RAX] = call->number;
    call->context->uc_mcontext.gregs[REG_RIP] -= size_of_call;
}

int receive_before(const struct call *call) {
    struct rlk_slot *slot = own_slot();
    int restarts;
    slot->blocked = *blocked_by(call);
    if (receive(slot, slot->blocked, &restarts) == 0) return 0;
    repeat(call);
    return 1;
}

/// Returns 1 if an interrupted call is made again after a handler that allows it, and 2 if after any.
static int restarts_after(const struct call *call) {
    switch (call->number) {
        case SYS_read: case SYS_readv: case SYS_write: case SYS_writev: case SYS_sendto: case SYS_sendmsg:
        case SYS_recvfrom: case SYS_recvmsg: case SYS_accept: case SYS_accept4: case SYS_connect: case SYS_flock:
        case SYS_fcntl: case SYS_wait4: case SYS_waitid:
            return 1;
        case SYS_futex:
            switch (call->b & FUTEX_CMD_MASK) {
                case FUTEX_WAIT: case FUTEX_WAIT_BITSET: return call->d == 0;
                default: return 2;
            }
        default: return 0;
    }
}

void receive_after(const struct call *call, long result) {
    struct rlk_slot *slot = own_slot();
    int restarts = 1;
    slot->blocked = *blocked_by(call);
    receive(slot, slot->blocked, &restarts);
    if (result == -EINTR && restarts_after(call) + restarts > 1) repeat(call);
}

const uint64_t *set_named_by(const struct call *call) {
    switch (call->number) {
        case SYS_rt_sigsuspend: return (const uint64_t *)call->a;
        case SYS_ppoll: return (const uint64_t *)call->d;
        case SYS_epoll_pwait: case SYS_epoll_pwait2: return (const uint64_t *)call->e;
        case SYS_pselect6: return call->f ? *(const uint64_t *const *)call->f : NULL;
        default: return NULL;
    }
}

long answer_with_set(const struct call *call, uint64_t set) {
    struct rlk_slot *slot = own_slot();
    int restarts;
    slot->blocked = set &= ~never_blocked();
    long result = answer(call);
    // The handlers run here, because the set holds for them alone.
    if (result == -EINTR && receive(slot, set, &restarts) > 0) kernel(SYS_rt_sigsuspend, (long)&set, 8, 0, 0, 0, 0);
    return result;
}

// MARK: Sending

/// Sends a signal to a thread of the process itself.
static long send_to(int index, int signal) {
    struct rlk_slot *slot = &page->slots[index];
    uint64_t own = bit(signal);
    if (signal == SIGSTOP || (signal == SIGTSTP && !(page->handled & own))) {
        escape("stops itself", -1);
        return 0;
    }
    if (!(slot->blocked & own) && !(page->handled & own)) {
        if (!((page->ignored | rlk_harmless_signals()) & own)) ask(rlk_request_end_by_signal, signal, 1, 0, 0);
        return 0;
    }
    slot->pending |= own;
    return slot == own_slot() ? 0 : ask(rlk_request_interrupt, index, 0, 0, 0);
}

static long send_to_thread(int32_t thread, int signal) {
    if (signal < 0 || signal > 64) return -EINVAL;
    for (int index = 0; index < rlk_most_threads; index++)
        if (page->slots[index].number == thread) return signal == 0 ? 0 : send_to(index, signal);
    return -ESRCH;
}

void raise_signal(int signal) { send_to_thread(own_slot()->number, signal); }

// MARK: Actions and sets

static long set_action(const struct call *call) {
    int signal = call->a;
    const struct action *action = (const struct action *)call->b;
    if (signal == SIGSYS) return 0;
    if (!action || signal < 1 || signal > 64)
        return kernel(call->number, signal, call->b, call->c, call->d, 0, 0);
    struct action copy = *action;
    copy.restorer = return_from_handler;
    copy.mask &= ~never_blocked();
    // A child has handlers of its own, which the program that it runs does not get.
    long result = kernel(call->number, signal, is_child() ? 0 : (long)&copy, call->c, call->d, 0, 0);
    if (result != 0) return result;
    page->handled &= ~bit(signal);
    page->ignored &= ~bit(signal);
    if (copy.handler == SIG_IGN) page->ignored |= bit(signal);
    if (is_child()) return 0;
    if (copy.handler == SIG_IGN) {
        page->pending &= ~bit(signal);
        for (int index = 0; index < rlk_most_threads; index++) page->slots[index].pending &= ~bit(signal);
    } else if (copy.handler != SIG_DFL) {
        page->handled |= bit(signal);
    }
    flags_of[signal] = copy.flags;
    return 0;
}

static long change_blocked(const struct call *call) {
    uint64_t *blocked = blocked_by(call), former = *blocked;
    const uint64_t *change = (const uint64_t *)call->b;
    if (call->d != 8) return -EINVAL;
    if (change) {
        uint64_t set = *change & ~never_blocked();
        switch (call->a) {
            case SIG_BLOCK: *blocked |= set; break;
            case SIG_UNBLOCK: *blocked &= ~set; break;
            case SIG_SETMASK: *blocked = set; break;
            default: return -EINVAL;
        }
    }
    if (call->c) *(uint64_t *)call->c = former;
    return 0;
}

static long tell_pending(uint64_t *set) {
    const struct rlk_slot *slot = own_slot();
    *set = (page->pending | slot->pending) & slot->blocked;
    return 0;
}

void inherit_signals(void) {
    struct action action = {SIG_IGN, 0x04000000, return_from_handler, 0};
    for (int signal = 1; signal <= 64; signal++)
        if (page->ignored & bit(signal)) kernel(SYS_rt_sigaction, signal, (long)&action, 0, 8, 0, 0);
    kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&page->slots[0].blocked, 0, 8, 0, 0);
}

// MARK: Waits

/// Waits until a signal comes.
static long pause_thread(void) { return ask(rlk_request_sleep, -1, 0, 0, 0); }

/// Waits until one of some signals has come, and takes it.
static long take_signal(uint64_t set, siginfo_t *info, const struct timespec *length) {
    struct rlk_slot *slot = own_slot();
    int64_t date = 0;
    long result = 0;
    if (length) {
        if ((uint64_t)length->tv_nsec >= 1000000000) return -EINVAL;
        date = page->clocks[rlk_clock_monotonic] + length->tv_sec * 1000000000 + length->tv_nsec;
    }
    while (result != -ETIMEDOUT) {
        uint64_t found = (page->pending | slot->pending) & set;
        if (found) {
            int signal = __builtin_ctzll(found) + 1;
            uint64_t *pending = slot->pending & bit(signal) ? &slot->pending : &page->pending;
            *pending &= ~bit(signal);
            if (info) *info = (siginfo_t){.si_signo = signal, .si_code = SI_USER, .si_uid = page->user};
            return signal;
        }
        if (result == -EINTR) return result;
        slot->awaited = set;
        result = ask(rlk_request_sleep, length ? rlk_clock_monotonic : -1, date, 0, 0);
        if (result == 0) result = -ETIMEDOUT;
        slot->awaited = 0;
        // A signal may have come at the last moment.
        if (result == -ETIMEDOUT && (page->pending | slot->pending) & set) result = 0;
    }
    return -EAGAIN;
}

// MARK: Timers

static int64_t nanoseconds(const struct timeval *time) { return time->tv_sec * 1000000000 + time->tv_usec * 1000; }

static struct timeval time_of(int64_t nanoseconds) {
    // A timer that has not ended has a length.
    int64_t microseconds = (nanoseconds + 999) / 1000;
    return (struct timeval){microseconds / 1000000, microseconds % 1000000};
}

/// Sets or reads the timer of a clock; that of processor time never ends, because programs take none.
static long answer_timer(int clock, const struct itimerval *time, struct itimerval *former) {
    int64_t length = time ? nanoseconds(&time->it_value) : 0, period = time ? nanoseconds(&time->it_interval) : 0;
    if (length < 0 || period < 0) return -EINVAL;
    if (clock != ITIMER_REAL) {
        if (length > 0) escape("sets a timer of processor time", -1);
        return 0;
    }
    long result = ask(rlk_request_set_alarm, length, period, !time, 0);
    const int64_t *numbers = (const int64_t *)own_slot()->data;
    if (result == 0 && former) *former = (struct itimerval){time_of(numbers[1]), time_of(numbers[0])};
    return result;
}

/// Sets the same timer, and returns the seconds that were left.
static long set_alarm(unsigned seconds) {
    struct itimerval time = {.it_value = {seconds, 0}}, former;
    long result = answer_timer(ITIMER_REAL, &time, &former);
    return result < 0 ? 0 : former.it_value.tv_sec + (former.it_value.tv_usec > 0);
}

/// Opens a descriptor for signals, or changes the set of one.
static long open_descriptor(int descriptor, uint64_t set, int flags) {
    set &= ~never_blocked();
    if (descriptor >= 0) {
        long result = ask(rlk_request_change_signals, descriptor, set, 0, 0);
        return result < 0 ? result : descriptor;
    }
    long result = ask(rlk_request_signals, 0, set, 0, 0);
    if (result >= 0 && flags & O_NONBLOCK) ask(rlk_request_set_blocking, result, 0, 0, 0);
    return result;
}

long answer_signal(const struct call *call, int *is_known) {
    switch (call->number) {
        case SYS_rt_sigaction: return set_action(call);
        case SYS_rt_sigprocmask: return change_blocked(call);
        case SYS_rt_sigpending: return tell_pending((uint64_t *)call->a);
        case SYS_pause: case SYS_rt_sigsuspend: return pause_thread();
        case SYS_rt_sigtimedwait:
            if (call->d != 8) return -EINVAL;
            return take_signal(*(const uint64_t *)call->a, (siginfo_t *)call->b, (const struct timespec *)call->c);
        case SYS_tgkill: return send_to_thread(call->b, call->c);
        case SYS_tkill: return send_to_thread(call->a, call->b);
        case SYS_kill: return ask(rlk_request_kill, call->a, call->b, 0, 0);
        case SYS_setitimer: return answer_timer(call->a, (const struct itimerval *)call->b, (struct itimerval *)call->c);
        case SYS_getitimer: return answer_timer(call->a, NULL, (struct itimerval *)call->b);
        case SYS_alarm: return set_alarm(call->a);
        case SYS_signalfd: return open_descriptor(call->a, *(const uint64_t *)call->b, 0);
        case SYS_signalfd4: return open_descriptor(call->a, *(const uint64_t *)call->b, call->d);
        default: *is_known = 0; return 0;
    }
}

#endif
