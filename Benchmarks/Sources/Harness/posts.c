// Tasks that other threads post.
#include "measure.h"
#include "placement.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

// A queue for peers that have none: the peer is woken up if the queue was empty.
typedef struct node {
    struct node *next;
    Task task;
    void *argument;
} Node;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Node *first, **rest = &first;

void harness_drain(void) {
    pthread_mutex_lock(&lock);
    Node *node = first;
    first = NULL;
    rest = &first;
    pthread_mutex_unlock(&lock);
    while (node) {
        Node *next = node->next;
        node->task(node->argument);
        free(node);
        node = next;
    }
}

void post_to_queue(Task task, void *argument) {
    Node *node = malloc(sizeof *node);
    *node = (Node){.task = task, .argument = argument};
    pthread_mutex_lock(&lock);
    bool was_empty = !first;
    *rest = node;
    rest = &node->next;
    pthread_mutex_unlock(&lock);
    if (was_empty) peer->wake();
}

static void stop_task(void *unused) { (void)unused, peer->stop(); }
void post_stop(void) { peer->post(stop_task, NULL); }

// A round trip: a post from one thread, answered through an eventfd.
static int answers;

static void answer(void *unused) {
    (void)unused;
    note_placement();
    uint64_t one = 1;
    if (write(answers, &one, sizeof one) != sizeof one) abort();
}

static void round_trip(void) {
    uint64_t value;
    peer->post(answer, NULL);
    if (read(answers, &value, sizeof value) != sizeof value) abort();
}

static void *ping_thread(void *unused) {
    (void)unused;
    measure_round_trips(round_trip);
    return NULL;
}

void ping(uint64_t unused) {
    (void)unused;
    answers = eventfd(0, 0);
    if (peer->post_prepare) peer->post_prepare();
    pthread_t thread;
    pthread_create(&thread, NULL, ping_thread, NULL);
    peer->run();
    pthread_join(thread, NULL);
}

// Posts as fast as possible.
static size_t tasks_done, producers_;
static atomic_bool started;
static uint64_t began, cpu_began;

static void count_task(void *unused) {
    (void)unused;
    place_loop_thread();
    if (++tasks_done == size) peer->stop();
}

static void *produce(void *unused) {
    (void)unused;
    place_other_thread();
    size_t count = size / producers_;
    while (!atomic_load(&started)) {}
    for (size_t i = 0; i < count; i++) peer->post(count_task, NULL);
    return NULL;
}

static void *start_producers(void *unused) {
    (void)unused;
    usleep(20000);
    cpu_began = cpu_ns();
    began = now_ns();
    atomic_store(&started, true);
    return NULL;
}

void post_all(uint64_t producers) {
    producers_ = producers;
    if (peer->post_prepare) peer->post_prepare();
    pthread_t threads[2], starter;
    for (size_t i = 0; i < producers; i++) pthread_create(&threads[i], NULL, produce, NULL);
    pthread_create(&starter, NULL, start_producers, NULL);
    peer->run();
    double wall = (double)(now_ns() - began), cpu = (double)(cpu_ns() - cpu_began);
    for (size_t i = 0; i < producers; i++) pthread_join(threads[i], NULL);
    pthread_join(starter, NULL);
    harness_emit("per_task", wall / (double)size, "ns");
    harness_emit("per_task_cpu", cpu / (double)size, "ns");
    if (peer->report) peer->report();
}
