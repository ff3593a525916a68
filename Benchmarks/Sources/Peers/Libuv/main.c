// libuv.
#include "peer.h"
#include <stdlib.h>
#include <uv.h>

static uv_loop_t loop;

static void start(const char *form, bool threads) {
    (void)form, (void)threads;
    uv_loop_init(&loop);
}

static void sync_time(void) { uv_update_time(&loop); }
static void run(void) { uv_run(&loop, UV_RUN_DEFAULT); }
static void stop(void) { uv_stop(&loop); }
static void pass(void) { uv_run(&loop, UV_RUN_NOWAIT); }

static void release(uv_handle_t *handle) { free(handle); }

static void fired(uv_timer_t *timer) {
    size_t i = (size_t)timer->data;
    uv_close((uv_handle_t *)timer, release);
    harness_fired(i);
}

static uv_timer_t *start_timer(uint64_t delay, uint64_t period, uv_timer_cb body, size_t i) {
    uv_timer_t *timer = malloc(sizeof *timer);
    uv_timer_init(&loop, timer);
    timer->data = (void *)i;
    uv_timer_start(timer, body, delay / 1000000, period / 1000000);
    return timer;
}

static Handle add(uint64_t delay, size_t i) { return start_timer(delay, 0, fired, i); }
static void cancel(Handle handle) { uv_close(handle, release); }
static void flush_cancels(void) { uv_run(&loop, UV_RUN_NOWAIT); }

static void move(Handle handle, uint64_t delay, size_t i) {
    (void)i;
    uv_timer_start(handle, fired, delay / 1000000, 0);
}

static void ticked(uv_timer_t *timer) { harness_fired((size_t)timer->data); }
static Handle add_repeating(uint64_t period, size_t i) { return start_timer(period, period, ticked, i); }

static void nothing(uv_timer_t *timer) { (void)timer; }
static void embed_prepare(Handle *handles, size_t count) {
    uv_timer_t *timers = calloc(count, sizeof *timers);
    for (size_t i = 0; i < count; i++) {
        uv_timer_init(&loop, &timers[i]);
        handles[i] = &timers[i];
    }
}
static void embed_add(Handle handle, uint64_t delay) { uv_timer_start(handle, nothing, delay / 1000000, 0); }
static void embed_cancel(Handle handle) { uv_timer_stop(handle); }

static uv_async_t waker;
static void woken(uv_async_t *async) {
    (void)async;
    harness_drain();
}
static void post_prepare(void) { uv_async_init(&loop, &waker, woken); }
static void wake(void) { uv_async_send(&waker); }

static void readable(uv_poll_t *poll, int status, int events) {
    (void)status, (void)events;
    uv_os_fd_t descriptor;
    uv_fileno((uv_handle_t *)poll, &descriptor);
    harness_readable(descriptor, (size_t)poll->data);
}
static void watch(int descriptor, size_t i) {
    uv_poll_t *poll = malloc(sizeof *poll);
    uv_poll_init(&loop, poll, descriptor);
    poll->data = (void *)i;
    uv_poll_start(poll, UV_READABLE, readable);
}

int main(int argc, char **argv) {
    Peer peer = {
        .resolution = 1000000, .caches_time = true, .start = start, .sync_time = sync_time, .run = run, .stop = stop,
        .pass = pass, .add = add, .cancel = cancel, .flush_cancels = flush_cancels, .rearm = move,
        .add_repeating = add_repeating,
        .embed_prepare = embed_prepare, .embed_add = embed_add, .embed_cancel = embed_cancel,
        .post_prepare = post_prepare, .wake = wake, .watch = watch,
    };
    return harness_main(argc, argv, &peer);
}
