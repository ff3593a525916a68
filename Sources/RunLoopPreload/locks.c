#include "preload.h"

// A sanitizer has definitions of its own.
#if defined(__x86_64__) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

// Functions at which a thread may have to wait for another one, or lets others go on. The C library makes no system call
// for a lock that is free, nor Swift for a task that goes to another actor, so the simulation would not hear of it. Here
// it chooses, if it is explored, whether another thread goes first.
//
// In a program that no simulation runs, they only pass on.

// MARK: Places

#define ALL(one)                                                                                                             \
    one(pthread_mutex_trylock) one(pthread_rwlock_tryrdlock) one(pthread_rwlock_trywrlock) one(pthread_cond_signal)          \
    one(pthread_cond_broadcast) one(sem_wait) one(sem_trywait) one(sem_timedwait) one(sem_clockwait) one(sem_post)           \
    one(swift_task_switch) one(swift_task_create) one(swift_asyncLet_begin) one(swift_continuation_resume)                   \
    one(swift_continuation_throwingResume) one(dispatch_async) one(dispatch_async_f) one(dispatch_sync)                      \
    one(dispatch_sync_f) one(dispatch_group_leave) one(dispatch_semaphore_signal)

#define NUMBER(function) number_of_##function,
enum { ALL(NUMBER) };
#define NAME(function) #function,
static const char *const names[] = {ALL(NAME)};

static void reach_place(void) {
    if (page && page->is_explored && has_threads()) ask(rlk_request_place, 0, 0, 0, 0);
}

/// Returns the function that the program means.
__attribute__((used)) HIDDEN void *reach_function(unsigned number) {
    static void *functions[sizeof names / sizeof *names];
    if (!functions[number]) functions[number] = dlsym(RTLD_NEXT, names[number]);
    reach_place();
    return functions[number];
}

/// Keeps the arguments, whatever they are, and goes on in the function that the program means.
#define DEFINE(function)                                                                                                     \
    __attribute__((naked, used, visibility("default"))) void again_##function(void) __asm__(#function);              \
    void again_##function(void) {                                                \
        __asm__("push %%rdi\n push %%rsi\n push %%rdx\n push %%rcx\n push %%r8\n push %%r9\n push %%r10\n"                  \
                "mov %[number], %%edi\n"                                                                                     \
                "call reach_function\n"                                                                                      \
                "mov %%rax, %%r11\n"                                                                                         \
                "pop %%r10\n pop %%r9\n pop %%r8\n pop %%rcx\n pop %%rdx\n pop %%rsi\n pop %%rdi\n"                          \
                "jmp *%%r11\n"                                                                                               \
                :                                                                                                            \
                : [number] "i"(number_of_##function));                                                                       \
    }
ALL(DEFINE)

// MARK: Locks with holders

#define NEXT(function) ((__typeof__(&function))(next ? next : (next = dlsym(RTLD_NEXT, #function))))

/// Takes a lock. The word tells who has it meanwhile.
#define LOCK(function, type, word)                                                                                           \
    __attribute__((visibility("default"))) int function(type *lock) {                                                  \
        static void *next;                                                                                                   \
        if (!page) return NEXT(function)(lock);                                                                              \
        reach_place();                                                                                                       \
        struct rlk_slot *slot = own_slot();                                                                                  \
        slot->frame = (uintptr_t)__builtin_frame_address(0);                                                                 \
        slot->holder = (uintptr_t)&lock->word;                                                                               \
        int result = NEXT(function)(lock);                                                                                   \
        slot->holder = 0;                                                                                                    \
        return result;                                                                                                       \
    }

LOCK(pthread_mutex_lock, pthread_mutex_t, __data.__owner)
LOCK(pthread_rwlock_rdlock, pthread_rwlock_t, __data.__cur_writer)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_t, __data.__cur_writer)

/// The holder has its turn only while the others rest.
__attribute__((visibility("default"))) int pthread_spin_lock(pthread_spinlock_t *lock) {
    static void *next;
    if (!page) return NEXT(pthread_spin_lock)(lock);
    reach_place();
    while (pthread_spin_trylock(lock) != 0) sched_yield();
    return 0;
}

#endif
