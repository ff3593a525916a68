// Timers that are added and cancelled, or moved, and never fire.
#include "measure.h"
#include <malloc.h>
#include <stdlib.h>

static void fired_too_early(size_t unused) { (void)unused, give_up("a timer fired that was to be cancelled"); }

// Adds all, then cancels all in random order; the median over rounds.
static void churn_rounds(Handle (*add)(uint64_t, size_t), void (*cancel)(size_t), bool measures_memory) {
    size_t rounds = size >= 1000000 ? 3 : size >= 100000 ? 5 : size >= 10000 ? 20 : 200;
    int64_t adds[200], cancels[200], adds_cpu[200], cancels_cpu[200];
    measures_memory = measures_memory && size >= 10000;
    when_fired = fired_too_early;
    size_t round = 0;
    uint64_t start = now_ns();
    while (round < rounds) {
        bool isFirst = round == 0;
        uint64_t resident = isFirst ? resident_bytes() : 0;
        sync_time();
        uint64_t cpu = cpu_ns(), begin = now_ns();
        for (size_t i = 0; i < size; i++) {
            handles[i] = add(delays[i], i);
            if ((i & 1023) == 0 && now_ns() - start > budget_ns()) give_up("adding");
        }
        if (peer->flush_adds) peer->flush_adds();
        uint64_t end = now_ns(), cpu_end = cpu_ns();
        adds[round] = (int64_t)((end - begin) * 1000 / size);
        adds_cpu[round] = (int64_t)((cpu_end - cpu) * 1000 / size);
        if (isFirst && measures_memory)
            harness_emit("memory", ((double)resident_bytes() - (double)resident) / (double)size, "B");

        cpu = cpu_ns(), begin = now_ns();
        for (size_t i = 0; i < size; i++) {
            cancel(permutation[i]);
            if ((i & 1023) == 0 && now_ns() - start > 2 * budget_ns()) {
                harness_emit("add", median(adds, round + 1) / 1000, "ns");
                give_up("cancelling");
            }
        }
        if (peer->flush_cancels) peer->flush_cancels();
        end = now_ns(), cpu_end = cpu_ns();
        cancels[round] = (int64_t)((end - begin) * 1000 / size);
        cancels_cpu[round] = (int64_t)((cpu_end - cpu) * 1000 / size);
        if (isFirst && measures_memory) {
            malloc_trim(0);
            harness_emit("memory_left", ((double)resident_bytes() - (double)resident) / (double)size, "B");
        }
        round++;
        if (now_ns() - start > budget_ns() / 2) break;
    }
    harness_emit("add", median(adds, round) / 1000, "ns");
    harness_emit("cancel", median(cancels, round) / 1000, "ns");
    harness_emit("add_cpu", median(adds_cpu, round) / 1000, "ns");
    harness_emit("cancel_cpu", median(cancels_cpu, round) / 1000, "ns");
}

static void cancel(size_t i) { peer->cancel(handles[i]); }
static void churn_plain(void *unused) { (void)unused, churn_rounds(peer->add, cancel, true); }
void churn(uint64_t unused) { (void)unused, on_loop(churn_plain, NULL); }

static Handle embed_add(uint64_t delay, size_t i) {
    peer->embed_add(handles[i], delay);
    return handles[i];
}
static void embed_cancel(size_t i) { peer->embed_cancel(handles[i]); }
void churn_embedded(uint64_t unused) {
    (void)unused;
    peer->embed_prepare(handles, size);
    churn_rounds(embed_add, embed_cancel, false);
}

static void remove_common(size_t i) { peer->remove_common(handles[i]); }
void churn_common(uint64_t unused) {
    (void)unused;
    peer->make_common();
    churn_rounds(peer->add_common, remove_common, false);
}

// Idle timeouts of `size` connections: a timer that is due at once pushes 1,000 of them back from within its callback
// and adds its successor, so that the loop makes a pass, and its clock moves, for every 1,000.
static uint64_t wanted, done, began;

static void arm_all(void *unused) {
    (void)unused;
    sync_time();
    for (size_t i = 0; i < size; i++) handles[i] = peer->add(delays[i], i);
    seed_random(44);
    peer->add(0, size);
}

static void move_some(size_t unused) {
    (void)unused;
    if (!done) began = now_ns();
    for (size_t k = 0; k < 1000; k++) {
        size_t i = random_bits() % size;
        peer->rearm(handles[i], 60000000000, i);
    }
    done += 1000;
    uint64_t elapsed = now_ns() - began;
    if (done >= wanted || elapsed > budget_ns() / 4) {
        harness_emit("rearm", (double)elapsed / (double)done, "ns");
        peer->stop();
    } else {
        peer->add(0, size);
    }
}

void rearm(uint64_t rearms) {
    wanted = rearms;
    when_fired = move_some;
    on_loop(arm_all, NULL);
    peer->run();
}
