#include "preload.h"

#if defined(__x86_64__)

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>

// The threads of a program, and the words at which they wait: the C library makes its locks, conditions, semaphores and
// joins of these, and Swift and Dispatch theirs.

static int waiting, threads;

int has_threads(void) { return threads > 0; }

void forget_threads(void) {
    waiting = threads = 0;
    set_own_slot(&page->slots[0]);
}

// MARK: Turns

void await_turn(struct rlk_slot *slot) {
    // A process that the program has made learns in this way that the simulation is gone.
    const struct timespec look = {.tv_sec = 30};
    uint32_t turn;
    while ((turn = atomic_load(&slot->turn)) != rlk_turn_of_program) {
        long result = kernel(SYS_futex, (long)&slot->turn, FUTEX_WAIT, turn, (long)&look, 0, 0);
        if (result == -ETIMEDOUT && kernel(SYS_getppid, 0, 0, 0, 0, 0, 0) != page->simulation)
            kernel(SYS_exit_group, 1, 0, 0, 0, 0, 0);
    }
}

long ask(enum rlk_request request, int64_t a, int64_t b, int64_t c, int64_t d) {
    struct rlk_slot *slot = own_slot();
    slot->request = request;
    slot->arguments[0] = a, slot->arguments[1] = b, slot->arguments[2] = c, slot->arguments[3] = d;
    atomic_store(&slot->turn, rlk_turn_of_simulation);
    kernel(SYS_futex, (long)&slot->turn, FUTEX_WAKE, 1, 0, 0, 0);
    await_turn(slot);
    return slot->result;
}

// MARK: Words

static uint32_t load(uint32_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }

static int replace(uint32_t *word, uint32_t expected, uint32_t value) {
    return __atomic_compare_exchange_n(word, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static int64_t nanoseconds(const struct timespec *time) {
    const int64_t second = 1000000000;
    return time->tv_sec >= INT64_MAX / second ? INT64_MAX : time->tv_sec * second + time->tv_nsec;
}

static int64_t sum(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

/// Waits for a wake-up, until a clock shows a time if there is one. Returns 0, -ETIMEDOUT or -EINTR.
static long wait_for_wake(uint32_t *word, uint32_t bits, int has_limit, enum rlk_clock clock, int64_t time) {
    waiting += 1;
    long result = ask(rlk_request_wait, (int64_t)(intptr_t)word, bits, has_limit ? (int)clock : -1, time);
    waiting -= 1;
    return result;
}

static long wait_at(uint32_t *word, int operation, uint32_t value, const struct timespec *time, uint32_t bits) {
    int is_wall = operation & FUTEX_CLOCK_REALTIME, is_date = (operation & FUTEX_CMD_MASK) != FUTEX_WAIT;
    if (bits == 0 || (time && (uint64_t)time->tv_nsec >= 1000000000)) return -EINVAL;
    if (load(word) != value) return -EAGAIN;
    enum rlk_clock clock = is_wall ? rlk_clock_wall : rlk_clock_monotonic;
    int64_t limit = time ? nanoseconds(time) : 0;
    if (time && !is_date) limit = sum(page->clocks[clock], limit);
    return wait_for_wake(word, bits, time != NULL, clock, limit);
}

long wake(uint32_t *word, int most, uint32_t bits) {
    if (bits == 0) return -EINVAL;
    if (waiting == 0) return 0;
    // The kernel counts after each wake-up, so it makes one also for a limit of none.
    return ask(rlk_request_wake, (int64_t)(intptr_t)word, bits, most > 0 ? most : 1, 0);
}

/// Wakes threads, and has others wait at another word, if the word has an expected value or there is none.
static long move_waits(uint32_t *word, uint32_t *other, int most, int most_moved, const uint32_t *expected) {
    if (most < 0 || most_moved < 0) return -EINVAL;
    if (expected && load(word) != *expected) return -EAGAIN;
    if (waiting == 0) return 0;
    return ask(rlk_request_move, (int64_t)(intptr_t)word, (int64_t)(intptr_t)other, most, most_moved);
}

/// Returns 1 if a value meets a condition, which is one of the kernel's numbers; -ENOSYS if it is none.
static long meets(int value, int condition, int argument) {
    switch (condition) {
        case FUTEX_OP_CMP_EQ: return value == argument;
        case FUTEX_OP_CMP_NE: return value != argument;
        case FUTEX_OP_CMP_LT: return value < argument;
        case FUTEX_OP_CMP_LE: return value <= argument;
        case FUTEX_OP_CMP_GT: return value > argument;
        case FUTEX_OP_CMP_GE: return value >= argument;
        default: return -ENOSYS;
    }
}

/// Changes a word, wakes threads at one, and at the changed word also if its value before meets a condition.
static long wake_with_operation(uint32_t *word, uint32_t *other, int most, int most_of_other, uint32_t encoded) {
    // Both are signed numbers of twelve bits.
    int argument = (int)(encoded << 8) >> 20, limit = (int)(encoded << 20) >> 20;
    if (encoded & (uint32_t)FUTEX_OP_OPARG_SHIFT << 28) argument = (int)(1u << (argument & 31));
    uint32_t value = load(other), change = (uint32_t)argument;
    switch (encoded >> 28 & 7) {
        case FUTEX_OP_SET: break;
        case FUTEX_OP_ADD: change += value; break;
        case FUTEX_OP_OR: change |= value; break;
        case FUTEX_OP_ANDN: change = value & ~change; break;
        case FUTEX_OP_XOR: change ^= value; break;
        default: return -ENOSYS;
    }
    __atomic_store_n(other, change, __ATOMIC_SEQ_CST);
    long also = meets((int)value, encoded >> 24 & 15, limit);
    if (also < 0) return also;
    long woken = wake(word, most, ~0u);
    return also ? woken + wake(other, most_of_other, ~0u) : woken;
}

/// A word with the number of an owner, and a bit that others wait.
static long lock_at(uint32_t *word, const struct timespec *time, enum rlk_clock clock) {
    uint32_t own = own_slot()->number, others = 0;
    for (;;) {
        uint32_t value = load(word);
        if ((value & FUTEX_TID_MASK) == own) return -EDEADLK;
        if (value == 0) {
            if (replace(word, 0, own | others)) return 0;
            continue;
        }
        if (!(value & FUTEX_WAITERS) && !replace(word, value, value | FUTEX_WAITERS)) continue;
        if (!time) own_slot()->holder = (uintptr_t)word;
        own_slot()->frame = 0;
        long result = wait_for_wake(word, ~0u, time != NULL, clock, time ? nanoseconds(time) : 0);
        own_slot()->holder = 0;
        if (result != 0) return result;
        // More threads may wait until this one gives the lock back.
        others = FUTEX_WAITERS;
    }
}

static long unlock_at(uint32_t *word) {
    if ((load(word) & FUTEX_TID_MASK) != (uint32_t)own_slot()->number) return -EPERM;
    __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
    wake(word, 1, ~0u);
    return 0;
}

static long try_lock_at(uint32_t *word) {
    uint32_t own = own_slot()->number;
    if ((load(word) & FUTEX_TID_MASK) == own) return -EDEADLK;
    return replace(word, 0, own) ? 0 : -EAGAIN;
}

long answer_futex(const struct call *call) {
    // In newer headers.
    enum { lock_pi2 = 13 };
    uint32_t *word = (uint32_t *)call->a;
    const struct timespec *time = (const struct timespec *)call->d;
    int operation = (int)call->b;
    switch (operation & FUTEX_CMD_MASK) {
        case FUTEX_WAIT: return wait_at(word, operation, call->c, time, FUTEX_BITSET_MATCH_ANY);
        case FUTEX_WAIT_BITSET: return wait_at(word, operation, call->c, time, call->f);
        case FUTEX_WAKE: return wake(word, call->c, FUTEX_BITSET_MATCH_ANY);
        case FUTEX_WAKE_BITSET: return wake(word, call->c, call->f);
        case FUTEX_CMP_REQUEUE: {
            uint32_t expected = (uint32_t)call->f;
            return move_waits(word, (uint32_t *)call->e, call->c, call->d, &expected);
        }
        case FUTEX_REQUEUE: return move_waits(word, (uint32_t *)call->e, call->c, call->d, NULL);
        case FUTEX_WAKE_OP:
            return wake_with_operation(word, (uint32_t *)call->e, call->c, call->d, call->f);
        case FUTEX_LOCK_PI: return lock_at(word, time, rlk_clock_wall);
        case lock_pi2:
            return lock_at(word, time, operation & FUTEX_CLOCK_REALTIME ? rlk_clock_wall : rlk_clock_monotonic);
        case FUTEX_UNLOCK_PI: return unlock_at(word);
        case FUTEX_TRYLOCK_PI: return try_lock_at(word);
        default: escape("makes the futex call", operation & FUTEX_CMD_MASK); return -ENOSYS;
    }
}

// MARK: Beginning

/// The order of a context's registers in a slot; the last one is the instruction.
static const int order[] = {REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14, REG_R15, REG_RDI, REG_RSI, REG_RDX,
                            REG_R8,  REG_R9,  REG_R10, REG_RCX, REG_R11, REG_RIP};

/// Called first on a new thread, on its own stack. Returns the registers with which it continues.
__attribute__((used)) HIDDEN uint64_t *enter_thread(struct rlk_slot *slot) {
    set_own_slot(slot);
    slot->real_number = kernel(SYS_gettid, 0, 0, 0, 0, 0, 0);
    catch_calls();
    await_turn(slot);
    kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&slot->blocked, 0, 8, 0, 0);
    return slot->registers;
}

/// Makes a thread by the kernel's call, which continues where the program made it.
__attribute__((naked)) static long make_thread(long number, long a, long b, long c, long d, long e, struct rlk_slot *slot) {
    __asm__("push %rbx\n"
            "mov 16(%rsp), %rbx\n"
            "mov %rdi, %rax\n"
            "mov %rsi, %rdi\n"
            "mov %rdx, %rsi\n"
            "mov %rcx, %rdx\n"
            "mov %r8, %r10\n"
            "mov %r9, %r8\n"
            "syscall\n"
            "test %rax, %rax\n"
            "jz 1f\n"
            "pop %rbx\n"
            "ret\n"
            "1:\n"
            "mov %rsp, %r12\n"
            "and $-16, %rsp\n"
            "mov %rbx, %rdi\n"
            "call enter_thread\n"
            "mov %r12, %rsp\n"
            "mov 0(%rax), %rbx\n"
            "mov 8(%rax), %rbp\n"
            "mov 16(%rax), %r12\n"
            "mov 24(%rax), %r13\n"
            "mov 32(%rax), %r14\n"
            "mov 40(%rax), %r15\n"
            "mov 48(%rax), %rdi\n"
            "mov 56(%rax), %rsi\n"
            "mov 64(%rax), %rdx\n"
            "mov 72(%rax), %r8\n"
            "mov 80(%rax), %r9\n"
            "mov 88(%rax), %r10\n"
            "mov 112(%rax), %rcx\n"
            "xor %eax, %eax\n"
            "jmp *%rcx\n");
}

long begin_thread(const struct call *call) {
    struct clone_args arguments = {0};
    int is_new = call->number == SYS_clone3;
    if (is_new) {
        size_t size = (size_t)call->b < sizeof arguments ? (size_t)call->b : sizeof arguments;
        memcpy(&arguments, (const void *)call->a, size);
    } else {
        arguments = (struct clone_args){
            .flags = call->a, .stack = call->b, .parent_tid = call->c, .child_tid = call->d, .tls = call->e};
    }
    // The others have no arguments.
    if (!is_new && call->number != SYS_clone) arguments = (struct clone_args){0};
    if (!(arguments.flags & CLONE_THREAD) || !(arguments.flags & CLONE_SETTLS)) return make_process(call, &arguments);
    long index = ask(rlk_request_begin_thread, 0, 0, 0, 0);
    if (index < 0) return index;
    struct rlk_slot *slot = &page->slots[index];
    slot->number = page->process + ++threads;
    for (size_t register_number = 0; register_number < sizeof order / sizeof *order; register_number++)
        slot->registers[register_number] = call->context->uc_mcontext.gregs[order[register_number]];
    memcpy(&slot->blocked, &call->context->uc_sigmask, 8);
    slot->awaited = slot->pending = slot->holder = slot->frame = 0;
    slot->name[0] = 0;
    slot->end_word = arguments.flags & CLONE_CHILD_CLEARTID ? (uint32_t *)arguments.child_tid : NULL;
    long result = make_thread(call->number, call->a, call->b, call->c, call->d, call->e, slot);
    if (result < 0) return result;
    // The numbers of a machine's processes and threads are the simulation's.
    if (arguments.flags & CLONE_PARENT_SETTID) *(int32_t *)arguments.parent_tid = slot->number;
    if (slot->end_word) *slot->end_word = slot->number;
    return slot->number;
}

void end_thread(void) {
    struct rlk_slot *slot = own_slot();
    // The kernel would touch the thread's memory once more, which others may have freed or used again by then.
    kernel(SYS_set_tid_address, 0, 0, 0, 0, 0, 0);
    kernel(SYS_set_robust_list, 0, 24, 0, 0, 0, 0);
    slot->number = 0;
    // The stack is free for a new thread as soon as the word is zero, so this comes with the end of the turn, and without
    // the stack. The simulation wakes those that wait for the word.
    uint32_t *end_word = slot->end_word ? slot->end_word : (uint32_t *)&slot->number;
    register long wake_one __asm__("rdx") = 1;
    __asm__ volatile("movl $0, (%[end_word])\n"
                     "movl %[over], (%[turn])\n"
                     "mov %[turn], %%rdi\n"
                     "mov %[futex], %%eax\n"
                     "mov %[wake], %%esi\n"
                     "syscall\n"
                     "mov %[exit], %%eax\n"
                     "xor %%edi, %%edi\n"
                     "syscall\n"
                     :
                     : [turn] "b"(&slot->turn), [end_word] "r"(end_word), [over] "i"(rlk_turn_over),
                       [futex] "i"(SYS_futex), [wake] "i"(FUTEX_WAKE), [exit] "i"(SYS_exit), "r"(wake_one)
                     : "rax", "rdi", "rsi", "rcx", "r11", "memory");
    __builtin_unreachable();
}

#endif
