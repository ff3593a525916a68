// libevent. Forms: precise (a timerfd), threads (with locks), common (delays in whole seconds, on common timeouts).
#include "peer.h"
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>
#include <stdlib.h>
#include <string.h>

static struct event_base *base;
static bool uses_common_timeouts;
static const struct timeval *common_timeouts[128];

static void start(const char *form, bool threads) {
    if (threads || !strcmp(form, "threads")) evthread_use_pthreads();
    struct event_config *config = event_config_new();
    if (!strcmp(form, "precise")) event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    base = event_base_new_with_config(config);
    uses_common_timeouts = !strcmp(form, "common");
    if (!uses_common_timeouts) return;
    for (int seconds = 0; seconds < 128; seconds++) {
        struct timeval timeout = {seconds, seconds ? 0 : 25000};
        common_timeouts[seconds] = event_base_init_common_timeout(base, &timeout);
    }
}

static void run(void) { event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY); }
static void stop(void) { event_base_loopbreak(base); }
static void pass(void) { event_base_loop(base, EVLOOP_NONBLOCK); }

static void arm(struct event *event, uint64_t delay) {
    struct timeval time = {(time_t)(delay / 1000000000), (suseconds_t)(delay % 1000000000 / 1000)};
    event_add(event, uses_common_timeouts ? common_timeouts[time.tv_sec] : &time);
}

// A callback gets one argument, the number, by which its event is found.
static struct event **events_by_number;
static size_t capacity;

static void timer_fired(evutil_socket_t descriptor, short events, void *argument) {
    (void)descriptor, (void)events;
    size_t i = (size_t)argument;
    event_free(events_by_number[i]);
    harness_fired(i);
}

static Handle add(uint64_t delay, size_t i) {
    struct event *event = event_new(base, -1, 0, timer_fired, (void *)i);
    arm(event, delay);
    if (i >= capacity) {
        capacity = i * 2 + 1024;
        events_by_number = realloc(events_by_number, capacity * sizeof *events_by_number);
    }
    return events_by_number[i] = event;
}

static void cancel(Handle handle) { event_free(handle); }

static void move(Handle handle, uint64_t delay, size_t i) {
    (void)i;
    arm(handle, delay);
}

static void ticked(evutil_socket_t descriptor, short events, void *argument) {
    (void)descriptor, (void)events;
    harness_fired((size_t)argument);
}

static Handle add_repeating(uint64_t period, size_t i) {
    struct event *event = event_new(base, -1, EV_PERSIST, ticked, (void *)i);
    arm(event, period);
    return event;
}

static void nothing(evutil_socket_t descriptor, short events, void *argument) {
    (void)descriptor, (void)events, (void)argument;
}
static void embed_prepare(Handle *handles, size_t count) {
    struct event *events = calloc(count, sizeof *events);
    for (size_t i = 0; i < count; i++) {
        event_assign(&events[i], base, -1, 0, nothing, NULL);
        handles[i] = &events[i];
    }
}
static void embed_add(Handle handle, uint64_t delay) { arm(handle, delay); }
static void embed_cancel(Handle handle) { event_del(handle); }

static struct event *waker;
static void woken(evutil_socket_t descriptor, short events, void *argument) {
    (void)descriptor, (void)events, (void)argument;
    harness_drain();
}
static void post_prepare(void) {
    waker = event_new(base, -1, EV_PERSIST, woken, NULL);
    event_add(waker, NULL);
}
static void wake(void) { event_active(waker, EV_READ, 0); }

static void readable(evutil_socket_t descriptor, short events, void *argument) {
    (void)events;
    harness_readable(descriptor, (size_t)argument);
}
static void watch(int descriptor, size_t i) {
    event_add(event_new(base, descriptor, EV_READ | EV_PERSIST, readable, (void *)i), NULL);
}

int main(int argc, char **argv) {
    Peer peer = {
        .resolution = 1000, .start = start, .run = run, .stop = stop, .pass = pass,
        .add = add, .cancel = cancel, .rearm = move, .add_repeating = add_repeating,
        .embed_prepare = embed_prepare, .embed_add = embed_add, .embed_cancel = embed_cancel,
        .post_prepare = post_prepare, .wake = wake, .watch = watch,
    };
    return harness_main(argc, argv, &peer);
}
