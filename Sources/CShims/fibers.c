#define _GNU_SOURCE

#include "fibers.h"

#include "cshims.h"

#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

// ThreadSanitizer is to see threads.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HANDS_OVER_BY_KERNEL
#endif
#endif
#if !defined(__x86_64__) && !defined(__aarch64__)
#define HANDS_OVER_BY_KERNEL
#endif

/// The state of a fiber's thread.
enum {
    /// The thread has not reached the fiber's beginning.
    comes,
    /// The thread sleeps, and the fiber may run on the carrier.
    sleeps,
    /// The thread makes a system call for the fiber.
    calls,
    /// The thread continues with the fiber.
    goes_on
};

/// The thread that runs the fibers.
struct carrier {
    struct rlk_fiber *resident;
    /// The fiber whose turn it is; NULL while none has it.
    struct rlk_fiber *running;
    /// A fiber that has just handed over and continues on its own thread.
    struct rlk_fiber *leaving;
    /// The fiber to which a thread outside gives the turn.
    _Atomic(struct rlk_fiber *) called;
    _Atomic uint32_t bell;
    struct rlk_dispatch *dispatch;
    int number;
};

struct rlk_fiber {
    struct carrier *carrier;
    int is_resident;
    /// The place where the fiber rests.
    void *stack;
    uintptr_t thread_pointer;
    _Atomic uint32_t thread;
    /// The kernel's number of the fiber's thread.
    int number;
    /// A system call that the thread makes for the fiber, and the result.
    long call[5], result;
    int is_stopped;
    /// 1 if the fiber runs, or is to run, on its own thread.
    int is_on_own_thread;
    /// A stack for the thread while it sleeps.
    char *idle_stack;
    uint64_t signals;
    /// 1 while the fiber has the turn; used without a carrier.
    _Atomic uint32_t turn;
};

/// The calling fiber, on the carrier; NULL on all other threads, including the resident fiber's.
static _Thread_local struct rlk_fiber *own __attribute__((tls_model("initial-exec")));

int rlk_is_carried(void) { return own != NULL; }

int rlk_carrier_number(void) { return own ? own->carrier->number : 0; }

int rlk_fiber_number(void) { return own ? own->number : 0; }

// MARK: Waiting

/// A simulation does not answer these calls.
static void await_change(_Atomic uint32_t *word, uint32_t value) {
    unsigned *answers = rlk_set_simulated(NULL);
    int error = errno;
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    errno = error;
    rlk_set_simulated(answers);
}

static void tell(_Atomic uint32_t *word) {
    unsigned *answers = rlk_set_simulated(NULL);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    rlk_set_simulated(answers);
}

// MARK: Hand-over by the kernel

#ifdef HANDS_OVER_BY_KERNEL

static struct carrier *make_carrier(void) { return NULL; }

void rlk_give_turn(struct rlk_fiber *fiber) {
    atomic_store_explicit(&fiber->turn, 1, memory_order_release);
    tell(&fiber->turn);
}

int rlk_begin_fiber(struct rlk_fiber *fiber) {
    while (!atomic_exchange_explicit(&fiber->turn, 0, memory_order_acquire)) await_change(&fiber->turn, 0);
    return fiber->is_stopped;
}

int rlk_pass_turn(struct rlk_fiber *fiber, struct rlk_fiber *next) {
    if (next == fiber) return fiber->is_stopped;
    if (next) rlk_give_turn(next);
    return rlk_begin_fiber(fiber);
}

void rlk_leave_carrier(struct rlk_fiber *fiber, struct rlk_fiber *next) {
    if (next) rlk_give_turn(next);
}

void rlk_stop_fiber(struct rlk_fiber *fiber, int rests) {
    fiber->is_stopped = 1;
    rlk_give_turn(fiber);
}

// No fiber has another number than its thread.
long rlk_call_on_own_thread(long number, long a, long b, long c, long d) { return -ENOSYS; }

#else

// MARK: Switching

// Saves on the stack the registers that functions keep, and at `saved` the stack pointer. Continues at `stack` with a
// thread pointer, and returns when another call continues at `saved`.
void rlk_switch(void **saved, void *stack, uintptr_t thread_pointer, int has_instruction);
// Saves the registers likewise, and calls a function, which does not return, on an empty stack.
void rlk_leave_stack(void **saved, void *end, void (*function)(struct rlk_fiber *), struct rlk_fiber *fiber);

// A function in assembly, which begins with SAVE_REGISTERS.
#define FUNCTION(name, instructions) \
    __asm__( \
        ".text\n" \
        ".p2align 4\n" \
        ".hidden " name "\n" \
        ".globl " name "\n" \
        ".type " name ", @function\n" \
        name ":\n" SAVE_REGISTERS instructions \
        ".size " name ", . - " name "\n")

#if defined(__x86_64__)
#define SAVE_REGISTERS \
    "    pushq %rbp\n" \
    "    pushq %rbx\n" \
    "    pushq %r12\n" \
    "    pushq %r13\n" \
    "    pushq %r14\n" \
    "    pushq %r15\n" \
    "    subq $8, %rsp\n" \
    "    stmxcsr (%rsp)\n" \
    "    fnstcw 4(%rsp)\n" \
    "    movq %rsp, (%rdi)\n"

FUNCTION("rlk_switch",
    "    testl %ecx, %ecx\n"
    "    je 1f\n"
    "    wrfsbase %rdx\n"
    "    jmp 2f\n"
    // arch_prctl(ARCH_SET_FS, thread_pointer)
    "1:  movq %rsi, %r8\n"
    "    movl $0x1002, %edi\n"
    "    movq %rdx, %rsi\n"
    "    movl $158, %eax\n"
    "    syscall\n"
    "    movq %r8, %rsi\n"
    "2:  movq %rsi, %rsp\n"
    "    ldmxcsr (%rsp)\n"
    "    fldcw 4(%rsp)\n"
    "    addq $8, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    retq\n");

FUNCTION("rlk_leave_stack",
    "    movq %rsi, %rsp\n"
    "    xorl %ebp, %ebp\n"
    "    movq %rcx, %rdi\n"
    "    callq *%rdx\n"
    "    ud2\n");
#else
#define SAVE_REGISTERS \
    "    sub sp, sp, #176\n" \
    "    stp x19, x20, [sp, #0]\n" \
    "    stp x21, x22, [sp, #16]\n" \
    "    stp x23, x24, [sp, #32]\n" \
    "    stp x25, x26, [sp, #48]\n" \
    "    stp x27, x28, [sp, #64]\n" \
    "    stp x29, x30, [sp, #80]\n" \
    "    stp d8, d9, [sp, #96]\n" \
    "    stp d10, d11, [sp, #112]\n" \
    "    stp d12, d13, [sp, #128]\n" \
    "    stp d14, d15, [sp, #144]\n" \
    "    mrs x9, fpcr\n" \
    "    str x9, [sp, #160]\n" \
    "    mov x9, sp\n" \
    "    str x9, [x0]\n"

FUNCTION("rlk_switch",
    "    msr tpidr_el0, x2\n"
    "    mov sp, x1\n"
    "    ldr x9, [sp, #160]\n"
    "    msr fpcr, x9\n"
    "    ldp d14, d15, [sp, #144]\n"
    "    ldp d12, d13, [sp, #128]\n"
    "    ldp d10, d11, [sp, #112]\n"
    "    ldp d8, d9, [sp, #96]\n"
    "    ldp x29, x30, [sp, #80]\n"
    "    ldp x27, x28, [sp, #64]\n"
    "    ldp x25, x26, [sp, #48]\n"
    "    ldp x23, x24, [sp, #32]\n"
    "    ldp x21, x22, [sp, #16]\n"
    "    ldp x19, x20, [sp, #0]\n"
    "    add sp, sp, #176\n"
    "    ret\n");

FUNCTION("rlk_leave_stack",
    "    mov sp, x1\n"
    "    mov x29, xzr\n"
    "    mov x30, xzr\n"
    "    mov x0, x3\n"
    "    br x2\n");
#endif

/// 1 if programs may set the thread pointer themselves.
static int has_instruction;

__attribute__((constructor)) static void find_instruction(void) {
#if defined(__x86_64__)
    const unsigned long hwcap2_fsgsbase = 1 << 1;
    has_instruction = (getauxval(AT_HWCAP2) & hwcap2_fsgsbase) != 0;
#endif
}

// While a thread sleeps, its fiber may run elsewhere with the thread-local memory of both. So it touches none: not
// errno, and not the memory of the C library or a sanitizer there.
#define LEAVES_THREAD_ALONE __attribute__((noinline, no_stack_protector, disable_sanitizer_instrumentation, no_sanitize("address")))

LEAVES_THREAD_ALONE static long call_kernel(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = 0;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#endif
}

enum { idle_stack_size = 16 * 1024 };

/// Sleeps on the thread of a fiber until the fiber comes back.
LEAVES_THREAD_ALONE static void sleep_until_needed(struct rlk_fiber *fiber) {
    uint32_t state = comes;
    if (atomic_compare_exchange_strong(&fiber->thread, &state, sleeps)) {
        call_kernel(SYS_futex, (long)&fiber->thread, FUTEX_WAKE_PRIVATE, 1, 0);
        while ((state = atomic_load(&fiber->thread)) != goes_on) {
            if (state == calls) {
                const long *call = fiber->call;
                fiber->result = call_kernel(call[0], call[1], call[2], call[3], call[4]);
                atomic_store(&fiber->thread, sleeps);
                call_kernel(SYS_futex, (long)&fiber->thread, FUTEX_WAKE_PRIVATE, 1, 0);
            }
            call_kernel(SYS_futex, (long)&fiber->thread, FUTEX_WAIT_PRIVATE, sleeps, 0);
        }
    }
    call_kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&fiber->signals, 0, sizeof fiber->signals);
    void *nowhere;
    rlk_switch(&nowhere, fiber->stack, fiber->thread_pointer, has_instruction);
}

long rlk_call_on_own_thread(long number, long a, long b, long c, long d) {
    memcpy(own->call, (long[]){number, a, b, c, d}, sizeof own->call);
    atomic_store(&own->thread, calls);
    tell(&own->thread);
    while (atomic_load(&own->thread) == calls) await_change(&own->thread, calls);
    return own->result;
}

static void continue_on_own_thread(struct rlk_fiber *fiber) {
    atomic_store(&fiber->thread, goes_on);
    tell(&fiber->thread);
}

/// Waits until a thread outside gives a fiber the turn.
static struct rlk_fiber *await_call(struct carrier *carrier) {
    for (;;) {
        uint32_t rings = atomic_load(&carrier->bell);
        struct rlk_fiber *called = atomic_exchange(&carrier->called, NULL);
        if (called) return called;
        await_change(&carrier->bell, rings);
    }
}

/// Continues with another fiber, and returns when another one continues with this one.
static void switch_to(struct rlk_fiber *next, struct rlk_fiber *fiber) {
    // A new thread may not have come yet.
    while (atomic_load_explicit(&next->thread, memory_order_acquire) == comes) await_change(&next->thread, comes);
    rlk_switch(&fiber->stack, next->stack, next->thread_pointer, has_instruction);
}

/// Called where a fiber continues. Returns whether it was stopped.
static int arrive(struct rlk_fiber *fiber) {
    struct carrier *carrier = fiber->carrier;
    while (!fiber->is_on_own_thread) {
        rlk_use_dispatch(carrier->dispatch);
        struct rlk_fiber *leaving = carrier->leaving;
        carrier->leaving = NULL;
        if (leaving) continue_on_own_thread(leaving);
        if (carrier->running == fiber) return fiber->is_stopped;
        // The resident fiber, which waits in place of the carrier.
        carrier->running = await_call(carrier);
        if (carrier->running != fiber) switch_to(carrier->running, fiber);
    }
    own = NULL;
    free(fiber->idle_stack);
    fiber->idle_stack = NULL;
    return fiber->is_stopped;
}

static struct carrier *make_carrier(void) {
    struct carrier *carrier = calloc(1, sizeof *carrier);
    if (!carrier) return NULL;
    carrier->dispatch = rlk_dispatch_of_thread();
    carrier->number = rlk_thread_id();
    return carrier;
}

int rlk_begin_fiber(struct rlk_fiber *fiber) {
    fiber->number = gettid();
    own = fiber;
    fiber->thread_pointer = rlk_thread_pointer();
    // Its signals are the carrier's while it sleeps, except the two of the C library.
    uint64_t all = ~(3ULL << 31);
    call_kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&fiber->signals, sizeof all);
    rlk_leave_stack(&fiber->stack, fiber->idle_stack + idle_stack_size, sleep_until_needed, fiber);
    return arrive(fiber);
}

int rlk_pass_turn(struct rlk_fiber *fiber, struct rlk_fiber *next) {
    struct carrier *carrier = fiber->carrier;
    if (fiber->is_stopped) {
        rlk_leave_carrier(fiber, next);
        return 1;
    }
    if (!next) next = await_call(carrier);
    carrier->running = next;
    if (next == fiber) return 0;
    switch_to(next, fiber);
    return arrive(fiber);
}

void rlk_leave_carrier(struct rlk_fiber *fiber, struct rlk_fiber *next) {
    struct carrier *carrier = fiber->carrier;
    fiber->is_on_own_thread = 1;
    carrier->leaving = fiber;
    carrier->running = next;
    switch_to(next ? next : carrier->resident, fiber);
    arrive(fiber);
}

void rlk_give_turn(struct rlk_fiber *fiber) {
    struct carrier *carrier = fiber->carrier;
    atomic_store(&carrier->called, fiber);
    atomic_fetch_add(&carrier->bell, 1);
    tell(&carrier->bell);
}

void rlk_stop_fiber(struct rlk_fiber *fiber, int rests) {
    fiber->is_stopped = 1;
    if (!rests) return;
    fiber->is_on_own_thread = 1;
    continue_on_own_thread(fiber);
}

#endif

// MARK: Fibers

struct rlk_fiber *rlk_make_carrier(void) {
    struct rlk_fiber *resident = calloc(1, sizeof *resident);
    if (!resident) return NULL;
    resident->is_resident = 1;
    resident->thread_pointer = rlk_thread_pointer();
    resident->carrier = make_carrier();
    if (resident->carrier) resident->carrier->resident = resident->carrier->running = resident;
    atomic_init(&resident->thread, sleeps);
    return resident;
}

struct rlk_fiber *rlk_make_fiber(struct rlk_fiber *resident) {
    struct rlk_fiber *fiber = calloc(1, sizeof *fiber);
    if (!fiber) return NULL;
    fiber->carrier = resident->carrier;
#ifndef HANDS_OVER_BY_KERNEL
    fiber->idle_stack = malloc(idle_stack_size);
    if (!fiber->idle_stack) {
        free(fiber);
        return NULL;
    }
#endif
    return fiber;
}

void rlk_free_fiber(struct rlk_fiber *fiber) {
    if (fiber->is_resident) free(fiber->carrier);
    free(fiber->idle_stack);
    free(fiber);
}
