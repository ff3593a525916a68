// The floor: a 4-ary indexed heap, epoll, and a queue without locks; the least that a loop can do.
//
// Forms: timerfd (instead of epoll_pwait2), slack (with the system's 50 us of timer slack), eventfd (posts only: a
// blocking read of an eventfd), pool (posts only: no allocation for a post).
#define _GNU_SOURCE
#include "peer.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// The heap.
typedef struct {
    uint32_t position;
    bool repeats;
    uint64_t period;
    size_t i;
} Timer;
typedef struct {
    uint64_t deadline;
    Timer *timer;
} Entry;
static Entry *heap;
static uint32_t count, capacity;

static inline void put(uint32_t position, Entry entry) {
    heap[position] = entry;
    entry.timer->position = position;
}

static inline void sift_up(uint32_t position, Entry entry) {
    while (position) {
        uint32_t parent = (position - 1) / 4;
        if (heap[parent].deadline <= entry.deadline) break;
        put(position, heap[parent]);
        position = parent;
    }
    put(position, entry);
}

static inline void sift_down(uint32_t position, Entry entry) {
    for (;;) {
        uint32_t first = 4 * position + 1;
        if (first >= count) break;
        uint32_t end = first + 4 < count ? first + 4 : count, least = first;
        uint64_t deadline = heap[first].deadline;
        for (uint32_t child = first + 1; child < end; child++) {
            if (heap[child].deadline >= deadline) continue;
            deadline = heap[child].deadline;
            least = child;
        }
        if (deadline >= entry.deadline) break;
        put(position, heap[least]);
        position = least;
    }
    put(position, entry);
}

static inline void replace(uint32_t position, Entry entry) {
    if (position && heap[(position - 1) / 4].deadline > entry.deadline) sift_up(position, entry);
    else sift_down(position, entry);
}

static inline void insert(Timer *timer, uint64_t deadline) {
    if (count == capacity) {
        capacity = capacity ? capacity * 2 : 1024;
        heap = realloc(heap, capacity * sizeof *heap);
    }
    sift_up(count++, (Entry){deadline, timer});
}

static inline void delete(Timer *timer) {
    Entry last = heap[--count];
    if (timer->position != count) replace(timer->position, last);
}

// The loop.
static enum { pwait2, timer_descriptor } waits_with;
static int poller, waker, alarm_;
static uint64_t now;
static bool is_stopped;
static struct {
    int descriptor;
    size_t i;
} *watched;
static size_t watched_count, watched_capacity;
static const uint64_t wake_mark = UINT64_MAX, alarm_mark = UINT64_MAX - 1;

static void sync_time(void) { now = now_ns(); }
static void stop(void) { is_stopped = true; }

static void poll_descriptor(int descriptor, uint32_t events, uint64_t mark) {
    struct epoll_event event = {.events = events, .data.u64 = mark};
    epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event);
}

// Vyukov's queue: many producers, one consumer.
typedef struct node {
    _Atomic(struct node *) next;
    Task task;
    void *argument;
} Node;
static Node stub;
static _Atomic(Node *) newest = &stub;
static Node *oldest = &stub;
static atomic_bool asleep;
static bool pools_nodes;

static void wake(void) {
    uint64_t one = 1;
    if (write(waker, &one, sizeof one) != sizeof one) abort();
}

static Node *make_node(void) {
    if (!pools_nodes) return malloc(sizeof(Node));
    static __thread Node *pool;
    static __thread size_t used;
    if (!pool) pool = malloc(1100000 * sizeof *pool);
    return &pool[used++];
}

static void post(Task task, void *argument) {
    Node *node = make_node();
    node->task = task;
    node->argument = argument;
    atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
    Node *previous = atomic_exchange(&newest, node);
    atomic_store(&previous->next, node);
    if (atomic_load(&asleep) && atomic_exchange(&asleep, false)) wake();
}

static inline void run_tasks(void) {
    Node *node;
    while ((node = atomic_load_explicit(&oldest->next, memory_order_acquire)) && !is_stopped) {
        if (oldest != &stub && !pools_nodes) free(oldest);
        oldest = node;
        node->task(node->argument);
    }
}

static int wait_for(struct epoll_event *events, int most) {
    if (!count) return epoll_wait(poller, events, most, -1);
    uint64_t time = now_ns(), deadline = heap[0].deadline;
    uint64_t rest = deadline > time ? deadline - time : 0;
    if (waits_with == pwait2) {
        struct timespec timeout = {(time_t)(rest / 1000000000), (long)(rest % 1000000000)};
        return epoll_pwait2(poller, events, most, &timeout, NULL);
    }
    static uint64_t set;
    if (rest && set != deadline) {
        struct itimerspec value = {.it_value = {(time_t)(deadline / 1000000000), (long)(deadline % 1000000000)}};
        timerfd_settime(alarm_, TFD_TIMER_ABSTIME, &value, NULL);
        set = deadline;
    }
    return epoll_wait(poller, events, most, rest ? -1 : 0);
}

static inline void one_pass(bool sleeps) {
    struct epoll_event events[256];
    if (sleeps) {
        run_tasks();
        if (is_stopped) return;
        atomic_store(&asleep, true);
        if (atomic_load(&oldest->next)) sleeps = false;
    }
    int ready = sleeps ? wait_for(events, 256) : epoll_wait(poller, events, 256, 0);
    atomic_store_explicit(&asleep, false, memory_order_relaxed);
    for (int k = 0; k < ready; k++) {
        uint64_t mark = events[k].data.u64;
        if (mark < alarm_mark) harness_readable(watched[mark].descriptor, watched[mark].i);
    }
    if (!count) return;
    now = now_ns();
    while (count && heap[0].deadline <= now && !is_stopped) {
        Timer *timer = heap[0].timer;
        size_t i = timer->i;
        if (timer->repeats) {
            sift_down(0, (Entry){heap[0].deadline + timer->period, timer});
            harness_fired(i);
        } else {
            delete(timer);
            free(timer);
            harness_fired(i);
        }
    }
}

static void run(void) {
    is_stopped = false;
    while (!is_stopped) one_pass(true);
}
static void pass(void) { one_pass(false); }

static void run_reading(void) {
    is_stopped = false;
    while (!is_stopped) {
        uint64_t value;
        if (read(waker, &value, sizeof value) != sizeof value) abort();
        harness_drain();
    }
}

// The functions that the harness calls.
static Timer *make(uint64_t delay, bool repeats, size_t i) {
    Timer *timer = malloc(sizeof *timer);
    timer->repeats = repeats;
    timer->period = delay;
    timer->i = i;
    insert(timer, now + delay);
    return timer;
}
static Handle add(uint64_t delay, size_t i) { return make(delay, false, i); }
static Handle add_repeating(uint64_t period, size_t i) { return make(period, true, i); }

static void cancel(Handle handle) {
    delete(handle);
    free(handle);
}

static void move(Handle handle, uint64_t delay, size_t i) {
    (void)i;
    Timer *timer = handle;
    replace(timer->position, (Entry){now + delay, timer});
}

static void embed_prepare(Handle *handles, size_t count) {
    Timer *timers = calloc(count, sizeof *timers);
    for (size_t i = 0; i < count; i++) handles[i] = &timers[i];
}
static void embed_add(Handle handle, uint64_t delay) { insert(handle, now + delay); }
static void embed_cancel(Handle handle) { delete(handle); }

static void watch(int descriptor, size_t i) {
    if (watched_count == watched_capacity) {
        watched_capacity = watched_capacity ? watched_capacity * 2 : 64;
        watched = realloc(watched, watched_capacity * sizeof *watched);
    }
    watched[watched_count].descriptor = descriptor;
    watched[watched_count].i = i;
    poll_descriptor(descriptor, EPOLLIN, watched_count++);
}

static Peer peer;

static void start(const char *form, bool threads) {
    (void)threads;
    if (!strcmp(form, "eventfd")) {
        waker = eventfd(0, 0);
        peer = (Peer){.run = run_reading, .stop = stop, .wake = wake};
        return;
    }
    poller = epoll_create1(0);
    waker = eventfd(0, EFD_NONBLOCK);
    poll_descriptor(waker, EPOLLIN | EPOLLET, wake_mark);
    if (strcmp(form, "slack")) prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    if (!strcmp(form, "timerfd")) {
        waits_with = timer_descriptor;
        alarm_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        poll_descriptor(alarm_, EPOLLIN | EPOLLET, alarm_mark);
    }
    if (!strcmp(form, "pool")) {
        pools_nodes = true;
        peer = (Peer){.run = run, .stop = stop, .post = post};
    }
    sync_time();
}

int main(int argc, char **argv) {
    peer = (Peer){
        .caches_time = true, .start = start, .sync_time = sync_time, .run = run, .stop = stop, .pass = pass,
        .add = add, .cancel = cancel, .rearm = move, .add_repeating = add_repeating,
        .embed_prepare = embed_prepare, .embed_add = embed_add, .embed_cancel = embed_cancel,
        .post = post, .watch = watch,
    };
    return harness_main(argc, argv, &peer);
}
