// systemd's sd-event.
#include "peer.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

static sd_event *loop;
static bool is_stopped;

static void start(const char *form, bool threads) {
    (void)form, (void)threads;
    if (sd_event_new(&loop) < 0) abort();
}

static void run(void) {
    is_stopped = false;
    while (!is_stopped) sd_event_run(loop, UINT64_MAX);
}
static void stop(void) { is_stopped = true; }
static void pass(void) { sd_event_run(loop, 0); }

static uint64_t now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static sd_event_source *add_time(uint64_t time, sd_event_time_handler_t body, size_t i) {
    sd_event_source *source = NULL;
    if (sd_event_add_time(loop, &source, CLOCK_MONOTONIC, time, 1, body, (void *)i) < 0) abort();
    return source;
}

static int fired(sd_event_source *source, uint64_t time, void *argument) {
    (void)time;
    sd_event_source_unref(source);
    harness_fired((size_t)argument);
    return 0;
}
static Handle add(uint64_t delay, size_t i) { return add_time(now_us() + delay / 1000, fired, i); }
static void cancel(Handle handle) { sd_event_source_unref(handle); }

static void move(Handle handle, uint64_t delay, size_t i) {
    (void)i;
    // The loop's time, as in a callback.
    uint64_t now;
    sd_event_now(loop, CLOCK_MONOTONIC, &now);
    sd_event_source_set_time(handle, now + delay / 1000);
}

// sd-event has no repeating timers: each is set anew, on its grid.
typedef struct {
    uint64_t period, next;
} Grid;
static Grid *grids;
static size_t capacity;

static int ticked(sd_event_source *source, uint64_t time, void *argument) {
    (void)time;
    size_t i = (size_t)argument;
    grids[i].next += grids[i].period;
    sd_event_source_set_time(source, grids[i].next);
    sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    harness_fired(i);
    return 0;
}

static Handle add_repeating(uint64_t period, size_t i) {
    if (i >= capacity) {
        capacity = i * 2 + 1024;
        grids = realloc(grids, capacity * sizeof *grids);
    }
    grids[i] = (Grid){period / 1000, now_us() + period / 1000};
    return add_time(grids[i].next, ticked, i);
}

static int waker;
static int woken(sd_event_source *source, int descriptor, uint32_t events, void *argument) {
    (void)source, (void)events, (void)argument;
    uint64_t value;
    if (read(descriptor, &value, sizeof value) == sizeof value) harness_drain();
    return 0;
}
static void post_prepare(void) {
    waker = eventfd(0, EFD_NONBLOCK);
    sd_event_add_io(loop, NULL, waker, EPOLLIN, woken, NULL);
}
static void wake(void) {
    uint64_t one = 1;
    if (write(waker, &one, sizeof one) != sizeof one) abort();
}

static int readable(sd_event_source *source, int descriptor, uint32_t events, void *argument) {
    (void)source, (void)events;
    harness_readable(descriptor, (size_t)argument);
    return 0;
}
static void watch(int descriptor, size_t i) {
    sd_event_add_io(loop, NULL, descriptor, EPOLLIN, readable, (void *)i);
}

int main(int argc, char **argv) {
    Peer peer = {
        .resolution = 1000, .start = start, .run = run, .stop = stop, .pass = pass,
        .add = add, .cancel = cancel, .rearm = move, .add_repeating = add_repeating,
        .post_prepare = post_prepare, .wake = wake, .watch = watch,
    };
    return harness_main(argc, argv, &peer);
}
