#define _GNU_SOURCE

#include <stddef.h>
#include <stdint.h>

#include "cinterposition.h"
#include "real.h"

// A task that calls an idle actor of Swift's default executor continues at once, on the same thread, and again when it
// returns. On several threads others may come before it. In an exploration, the task first waits at the place, which is
// an executor of the simulation, where others may be chosen to go first. In every simulation, a task that has taken
// many steps rests, because another thread's task or the time would end its loop on a real machine.

typedef struct rlk_executor Executor;

typedef __attribute__((swiftasynccall)) void Continuation(__attribute__((swift_async_context)) void *context);

/// The point where a task continues after the place. Lies in the memory of the task, as frames of functions do.
typedef struct {
    void *context;
    Continuation *continuation;
    Executor target;
} Hop;

extern __attribute__((swiftcall)) void *swift_task_alloc(size_t size) __attribute__((weak));
extern __attribute__((swiftcall)) void swift_task_dealloc(void *memory) __attribute__((weak));
extern __attribute__((swiftcall)) Executor swift_task_getCurrentExecutor(void) __attribute__((weak));

typedef __attribute__((swiftasynccall)) void Switch(
    __attribute__((swift_async_context)) void *context, Continuation *continuation, Executor target);

// The conventions of its calls are not those of C, which is why it has a type.
static Switch *real_switch(void) {
    static _Atomic(void *) found;
    void *function = atomic_load_explicit(&found, memory_order_relaxed);
    if (!function) {
        function = dlsym(RTLD_NEXT, "swift_task_switch");
        atomic_store_explicit(&found, function, memory_order_relaxed);
    }
    return (Switch *)function;
}

static Executor place, rest;

void rlk_set_places(struct rlk_executor new_place, struct rlk_executor new_rest) { place = new_place, rest = new_rest; }

static int is_default_actor(Executor executor) { return executor.object && executor.implementation == 0; }

static int is_generic(Executor executor) { return !executor.object; }

/// Returns 1 if others may come before a task that switches to this executor.
static int can_be_overtaken(Executor target) {
    if (!rlk_is_explored()) return 0;
    if (!is_default_actor(target) && !is_generic(target)) return 0;
    Executor current = swift_task_getCurrentExecutor();
    if (current.object == target.object) return 0;
    return is_default_actor(target) || is_default_actor(current);
}

static __attribute__((swiftasynccall)) void go_on(__attribute__((swift_async_context)) void *context) {
    Hop hop = *(Hop *)context;
    swift_task_dealloc(context);
    return real_switch()(hop.context, hop.continuation, hop.target);
}

/// Weak, because a program may have the runtime in itself; then calls of actors are no places.
__attribute__((weak, swiftasynccall)) void swift_task_switch(
    __attribute__((swift_async_context)) void *context, Continuation *continuation, Executor target) {
    int rests = rlk_take_step() && rest.object;
    if (!rests && !(place.object && can_be_overtaken(target))) return real_switch()(context, continuation, target);
    Hop *hop = swift_task_alloc(sizeof *hop);
    *hop = (Hop){context, continuation, target};
    return real_switch()(hop, go_on, rests ? rest : place);
}
