// The primitives of a peer for the harness. The harness has the workloads; a peer has only these primitives, each
// written as a user of that loop would write it. A null primitive means that the peer has no call for it.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void *Handle;
typedef void (*Task)(void *argument);

typedef struct {
    // The granularity of the peer's timers in ns; zero for one.
    uint64_t resolution;
    // Delays count from the last `sync_time`, not from the call.
    bool caches_time;
    // A late repeating timer fires once for all passed dates.
    bool skips_missed;

    // Begins. `form` names the variant, and may remove primitives. With `threads`, other threads will post.
    void (*start)(const char *form, bool threads);
    // Runs the task on the loop's thread and returns when it is done; null if that is the calling thread.
    void (*on_loop)(Task task, void *argument);
    void (*sync_time)(void);
    // Runs the loop until `stop`, which is called on the loop's thread. May be called again.
    void (*run)(void);
    void (*stop)(void);
    // Makes one pass, which does not wait.
    void (*pass)(void);
    // Passes the peer's own counters to `harness_emit` after a workload.
    void (*report)(void);

    // Timers. `add`: from nothing to an armed one-shot that calls `harness_fired(i)`; `flush_adds` completes the
    // additions.
    Handle (*add)(uint64_t delay, size_t i);
    void (*flush_adds)(void);
    // From an armed timer to nothing, with its memory released; `flush_cancels` completes the cancellations.
    void (*cancel)(Handle handle);
    void (*flush_cancels)(void);
    // Moves an armed timer's deadline to `delay` from now.
    void (*rearm)(Handle handle, uint64_t delay, size_t i);
    // Adds a repeating timer that calls `harness_fired(i)`.
    Handle (*add_repeating)(uint64_t period, size_t i);

    // Timers in memory that the caller owns. `embed_prepare` makes them, and stores their places.
    void (*embed_prepare)(Handle *handles, size_t count);
    void (*embed_add)(Handle handle, uint64_t delay);
    void (*embed_cancel)(Handle handle);

    // Tasks from other threads. A peer without a queue has `wake`, which calls `harness_drain` on the loop's thread.
    void (*post_prepare)(void);
    void (*post)(Task task, void *argument);
    void (*wake)(void);

    // Descriptors: lasting, level-triggered interest in reading; calls `harness_readable(descriptor, i)`.
    void (*watch)(int descriptor, size_t i);

    // Modes: 0 and 1 are two modes other than the default one.
    Handle (*add_in_mode)(uint64_t delay, int mode);
    void (*watch_in_mode)(int descriptor, size_t i, int mode);
    void (*pass_in_mode)(int mode);
    // Makes both modes common from now on; then adds timers in the common modes.
    void (*make_common)(void);
    Handle (*add_common)(uint64_t delay, size_t i);
    void (*remove_common)(Handle handle);

    // Virtual time: enters it, calls `arm`, and moves the time on by `duration` ns.
    void (*virtual_run)(uint64_t duration, Task arm);

    // Swift concurrency: starts a workload of the target Tasks, which calls `stop_loop` in the end; false if it does
    // not support the workload.
    bool (*tasks)(const char *workload, size_t size, const uint64_t *delays);
} Peer;

// The functions that a peer calls.
void harness_fired(size_t i);
void harness_drain(void);
void harness_readable(int descriptor, size_t i);
// For peers that read the bytes themselves.
void harness_received(size_t i, size_t bytes);
bool harness_echoes(void);
void harness_emit(const char *metric, double value, const char *unit);

// `argv`: form, workload, size, and the workload's other arguments. A peer's `main` is this call.
int harness_main(int argc, char **argv, Peer *peer);
