#ifndef CINTERPOSITION_H
#define CINTERPOSITION_H

#include <stdint.h>

// Functions of the C library, defined again: on threads of a simulation they answer from it, and on all others they are
// the library's. A program that links this target has them in place of the library's, as have the shared libraries that
// it uses. `swift_task_switch` of Swift's runtime is replaced in the same way.

/// Returns 1 if calls of shared libraries reach these functions; 0 in a program with a statically linked C library.
int rlk_calls_are_caught(void);

/// A serial executor of Swift, as the runtime refers to it.
struct rlk_executor {
    const void *object;
    /// The conformance of the object; 0 for an actor of the default executor.
    uintptr_t implementation;
};

/// Sets two executors: a task that calls an actor of Swift's default executor waits at `place` in an exploration, and a
/// task that may continue forever rests at `rest` in any simulation.
void rlk_set_places(struct rlk_executor place, struct rlk_executor rest);

#endif
