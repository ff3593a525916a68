// Descriptors: a ping-pong, libevent's chain, and descriptors of which half are out of mode.
#define _GNU_SOURCE
#include "measure.h"
#include "placement.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static void make_pair(int ends[2]) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends)) abort();
}

static bool echoes;
bool harness_echoes(void) { return echoes; }

// The chain: each read leads to a write to the next pair, until the writes are used up.
static int *write_ends;
static size_t writes_left, reads_done, writes_done;

static void chain_step(size_t i) {
    reads_done++;
    if (writes_left) {
        if (write(write_ends[(i + 1) % size], "e", 1) != 1) abort();
        writes_left--;
        writes_done++;
    } else if (reads_done == writes_done) {
        peer->stop();
    }
}

void harness_received(size_t i, size_t bytes) {
    while (bytes--) chain_step(i);
}

void harness_readable(int descriptor, size_t i) {
    char byte;
    if (read(descriptor, &byte, 1) != 1) return;
    if (echoes) {
        note_placement();
        if (write(descriptor, &byte, 1) != 1) abort();
    } else if (write_ends) {
        chain_step(i);
    }
}

static int far_end;

static void round_trip(void) {
    char byte = 'x';
    if (write(far_end, &byte, 1) != 1 || read(far_end, &byte, 1) != 1) abort();
}

static void *ping_thread(void *unused) {
    (void)unused;
    measure_round_trips(round_trip);
    return NULL;
}

// With 100 more idle descriptors.
void descriptor_ping(uint64_t unused) {
    (void)unused;
    echoes = true;
    if (peer->post_prepare) peer->post_prepare();
    for (size_t i = 1; i <= 100; i++) {
        int quiet[2];
        make_pair(quiet);
        peer->watch(quiet[0], i);
    }
    int ends[2];
    make_pair(ends);
    far_end = ends[1];
    fcntl(far_end, F_SETFL, fcntl(far_end, F_GETFL) & ~O_NONBLOCK);
    peer->watch(ends[0], 0);
    pthread_t thread;
    pthread_create(&thread, NULL, ping_thread, NULL);
    peer->run();
    pthread_join(thread, NULL);
}

static uint64_t chain_began;
static void begin_chain(void *unused) {
    (void)unused;
    enum { active = 100 };
    writes_left = 1000;
    reads_done = 0;
    writes_done = active;
    for (size_t i = 0; i < active; i++)
        if (write(write_ends[i * (size / active)], "e", 1) != 1) abort();
    chain_began = now_ns();
}

void descriptor_chain(uint64_t unused) {
    (void)unused;
    write_ends = zeroed(size * sizeof *write_ends);
    for (size_t i = 0; i < size; i++) {
        int ends[2];
        make_pair(ends);
        write_ends[i] = ends[1];
        peer->watch(ends[0], i);
    }
    enum { warmups = 10, rounds = 50 };
    int64_t wall[rounds], cpu[rounds];
    for (int round = -warmups; round < rounds; round++) {
        uint64_t cpu_began = cpu_ns();
        on_loop(begin_chain, NULL);
        peer->run();
        if (round < 0) continue;
        wall[round] = (int64_t)(now_ns() - chain_began);
        cpu[round] = (int64_t)(cpu_ns() - cpu_began);
    }
    harness_emit("total", median(wall, rounds) / 1000, "us");
    harness_emit("total_cpu", median(cpu, rounds) / 1000, "us");
}

static double per_pass(uint64_t passes, bool switches) {
    uint64_t begin = now_ns();
    for (uint64_t i = 0; i < passes; i++) peer->pass_in_mode(switches && i % 2);
    return (double)(now_ns() - begin) / (double)passes;
}

// Half of the descriptors are in mode 1, while passes are made in mode 0; in the end all out-of-mode descriptors are
// ready.
void descriptors_out_of_mode(uint64_t passes) {
    int *descriptors = zeroed(size * sizeof *descriptors);
    for (size_t i = 0; i < size; i++) {
        descriptors[i] = eventfd(0, EFD_NONBLOCK);
        if (descriptors[i] < 0) give_up("no descriptors left");
        peer->watch_in_mode(descriptors[i], i, i % 2);
    }
    per_pass(1000, true);
    harness_emit("pass", per_pass(passes, false), "ns");
    harness_emit("switch", per_pass(passes, true), "ns");
    uint64_t one = 1;
    for (size_t i = 1; i < size; i += 2)
        if (write(descriptors[i], &one, sizeof one) != sizeof one) abort();
    per_pass(1000, false);
    harness_emit("pass_others_ready", per_pass(passes, false), "ns");
}
