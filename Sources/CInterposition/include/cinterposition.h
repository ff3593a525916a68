#ifndef CINTERPOSITION_H
#define CINTERPOSITION_H

#include <stdint.h>

// Functions of the C library, defined again: on threads of a simulation they answer from it, and on all others they are the
// library's. A program that links this target has them in place of the library's, as have the shared libraries that it uses.
// `swift_task_switch` of Swift's runtime is defined again likewise.

/// Whether calls of shared libraries come to these functions: not in a program that has the C library in itself.
int rlk_calls_are_caught(void);

/// A serial executor of Swift, as the runtime refers to it.
struct rlk_executor {
    const void *object;
    /// The conformance of the object; 0 for an actor of the default executor.
    uintptr_t implementation;
};

/// Sets the executor at which, in an exploration, a task waits that calls an actor of Swift's default executor, and the one at
/// which, in any simulation, a task rests that may go on for ever.
void rlk_set_places(struct rlk_executor place, struct rlk_executor rest);

#endif
