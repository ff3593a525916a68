// libev.
#include "peer.h"
#include <ev.h>
#include <stdlib.h>

static struct ev_loop *loop;

static void start(const char *form, bool threads) {
    (void)form, (void)threads;
    loop = ev_loop_new(EVBACKEND_EPOLL);
}

static void sync_time(void) { ev_now_update(loop); }
static void run(void) { ev_run(loop, 0); }
static void stop(void) { ev_break(loop, EVBREAK_ALL); }
static void pass(void) { ev_run(loop, EVRUN_NOWAIT); }

static void fired(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)events;
    size_t i = (size_t)timer->data;
    free(timer);
    harness_fired(i);
}

typedef void (*Body)(struct ev_loop *, ev_timer *, int);

static ev_timer *start_timer(uint64_t delay, uint64_t period, Body body, size_t i) {
    ev_timer *timer = malloc(sizeof *timer);
    ev_timer_init(timer, body, (double)delay / 1e9, (double)period / 1e9);
    timer->data = (void *)i;
    ev_timer_start(loop, timer);
    return timer;
}

static Handle add(uint64_t delay, size_t i) { return start_timer(delay, 0, fired, i); }

static void cancel(Handle handle) {
    ev_timer_stop(loop, handle);
    free(handle);
}

static void move(Handle handle, uint64_t delay, size_t i) {
    (void)i;
    ev_timer *timer = handle;
    timer->repeat = (double)delay / 1e9;
    ev_timer_again(loop, timer);
}

static void ticked(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)events;
    harness_fired((size_t)timer->data);
}
static Handle add_repeating(uint64_t period, size_t i) { return start_timer(period, period, ticked, i); }

static void nothing(struct ev_loop *loop, ev_timer *timer, int events) { (void)loop, (void)timer, (void)events; }
static void embed_prepare(Handle *handles, size_t count) {
    ev_timer *timers = calloc(count, sizeof *timers);
    for (size_t i = 0; i < count; i++) {
        ev_timer_init(&timers[i], nothing, 1., 0.);
        handles[i] = &timers[i];
    }
}
static void embed_add(Handle handle, uint64_t delay) {
    ev_timer *timer = handle;
    ev_timer_set(timer, (double)delay / 1e9, 0.);
    ev_timer_start(loop, timer);
}
static void embed_cancel(Handle handle) { ev_timer_stop(loop, (ev_timer *)handle); }

static ev_async waker;
static void woken(struct ev_loop *loop, ev_async *async, int events) {
    (void)loop, (void)async, (void)events;
    harness_drain();
}
static void post_prepare(void) {
    ev_async_init(&waker, woken);
    ev_async_start(loop, &waker);
}
static void wake(void) { ev_async_send(loop, &waker); }

static void readable(struct ev_loop *loop, ev_io *io, int events) {
    (void)loop, (void)events;
    harness_readable(io->fd, (size_t)io->data);
}
static void watch(int descriptor, size_t i) {
    ev_io *io = malloc(sizeof *io);
    ev_io_init(io, readable, descriptor, EV_READ);
    io->data = (void *)i;
    ev_io_start(loop, io);
}

int main(int argc, char **argv) {
    Peer peer = {
        .resolution = 1000, .caches_time = true, .start = start, .sync_time = sync_time, .run = run, .stop = stop,
        .pass = pass, .add = add, .cancel = cancel, .rearm = move, .add_repeating = add_repeating,
        .embed_prepare = embed_prepare, .embed_add = embed_add, .embed_cancel = embed_cancel,
        .post_prepare = post_prepare, .wake = wake, .watch = watch,
    };
    return harness_main(argc, argv, &peer);
}
