// Timers that fire: once, again and again, and on virtual time.
#include "measure.h"
#include <stdlib.h>

static uint64_t begin, cpu_begin, armed_after, switches_begin;
static size_t fired, fired_early;
static int64_t *lateness;

static void note_one_shot(size_t i) {
    if (lateness) lateness[i] = (int64_t)(now_ns() - (begin + delays[i]));
    if (++fired == size) peer->stop();
}

static void arm_one_shots(void *unused) {
    (void)unused;
    sync_time();
    begin = now_ns();
    for (size_t i = 0; i < size; i++) {
        uint64_t delay = delays[i];
        if (!peer->caches_time) {
            uint64_t passed = now_ns() - begin;
            delay = delay > passed ? delay - passed : 0;
        }
        peer->add(delay, i);
        if ((i & 1023) == 0 && now_ns() - begin > budget_ns()) give_up("arming");
    }
    cpu_begin = cpu_ns();
    armed_after = now_ns() - begin;
    switches_begin = context_switches();
    fired_early = fired;
}

void fire(uint64_t unused) {
    (void)unused;
    when_fired = note_one_shot;
    // All are armed before the first is due.
    uint64_t lead = size <= 10000 ? 100000000 : size <= 100000 ? 1000000000 : 5000000000;
    // In bulk they come within a millisecond. With larger distances, the distance would be the processor time of a fire
    // in each loop that keeps up, whatever a fire takes.
    uint64_t divisor = size <= 10000 ? 1 : 50;
    for (size_t i = 0; i < size; i++) delays[i] = lead + delays[i] / divisor;
    size_t rounds = size >= 100000 ? 1 : 5;
    int64_t cpu[5], switches[5], p50[5], p99[5], earliest[5];
    if (size <= 10000) lateness = zeroed(size * sizeof *lateness);
    size_t round = 0;
    uint64_t start = now_ns();
    while (round < rounds) {
        fired = 0;
        on_loop(arm_one_shots, NULL);
        if (armed_after > lead || fired_early) give_up("arming took longer than the first delay");
        peer->run();
        cpu[round] = (int64_t)((cpu_ns() - cpu_begin) * 1000 / size);
        switches[round] = (int64_t)(context_switches() - switches_begin);
        if (lateness) {
            p50[round] = (int64_t)percentile(lateness, size, 0.5);
            p99[round] = (int64_t)percentile(lateness, size, 0.99);
            earliest[round] = lateness[0];
        }
        round++;
        if (now_ns() - start > budget_ns() / 2) break;
    }
    harness_emit("cpu_per_fire", median(cpu, round) / 1000, "ns");
    harness_emit("switches", median(switches, round), "");
    if (lateness) {
        harness_emit("late_p50", median(p50, round) / 1000, "us");
        harness_emit("late_p99", median(p99, round) / 1000, "us");
        harness_emit("earliest", median(earliest, round) / 1000, "us");
    }
    if (peer->report) peer->report();
}

// Lateness is taken against the grid: the k-th fire is due k periods after the timer was armed.
static uint64_t *armed, *last, end;
static uint64_t *ticks;
static int64_t *grid_lateness, *jitter;
static size_t lateness_count, jitter_count, capacity;
static bool is_stopping;

static void note_tick(size_t i) {
    uint64_t now = now_ns();
    if (now >= end) {
        if (!is_stopping) peer->stop();
        is_stopping = true;
        return;
    }
    uint64_t k = ++ticks[i], passed = (now - armed[i]) / delays[i];
    if (peer->skips_missed && passed > k) k = ticks[i] = passed;
    if (lateness_count < capacity)
        grid_lateness[lateness_count++] = (int64_t)(now - armed[i]) - (int64_t)(k * delays[i]);
    if (last[i] && jitter_count < capacity)
        jitter[jitter_count++] = llabs((int64_t)(now - last[i]) - (int64_t)delays[i]);
    last[i] = now;
}

static uint64_t duration;

static void arm_repeating(void *unused) {
    (void)unused;
    for (size_t i = 0; i < size; i++) {
        sync_time();
        armed[i] = now_ns();
        peer->add_repeating(delays[i], i);
    }
    cpu_begin = cpu_ns();
    begin = now_ns();
    end = begin + duration;
    switches_begin = context_switches();
}

static void round_periods(void) {
    uint64_t step = peer->resolution ? peer->resolution : 1;
    for (size_t i = 0; i < size; i++) delays[i] = (delays[i] + step / 2) / step * step;
}

void periodic(uint64_t milliseconds) {
    when_fired = note_tick;
    duration = milliseconds * 1000000;
    round_periods();
    armed = zeroed(size * sizeof *armed);
    last = zeroed(size * sizeof *last);
    ticks = zeroed(size * sizeof *ticks);
    capacity = 2000000;
    grid_lateness = zeroed(capacity * sizeof *grid_lateness);
    jitter = zeroed(capacity * sizeof *jitter);
    on_loop(arm_repeating, NULL);
    peer->run();
    double wall = (double)(now_ns() - begin), cpu = (double)(cpu_ns() - cpu_begin);
    double switches = (double)(context_switches() - switches_begin);
    double expected = 0;
    for (size_t i = 0; i < size; i++) expected += (double)((end - armed[i]) / delays[i]);
    harness_emit("cpu", 100 * cpu / wall, "%");
    harness_emit("cpu_per_fire", cpu / (double)lateness_count, "ns");
    harness_emit("fires", 100 * (double)lateness_count / expected, "%");
    harness_emit("late_p50", percentile(grid_lateness, lateness_count, 0.5) / 1000, "us");
    harness_emit("late_p99", percentile(grid_lateness, lateness_count, 0.99) / 1000, "us");
    harness_emit("earliest", (double)grid_lateness[0] / 1000, "us");
    harness_emit("latest", (double)grid_lateness[lateness_count - 1] / 1000, "us");
    harness_emit("jitter_p50", percentile(jitter, jitter_count, 0.5) / 1000, "us");
    harness_emit("jitter_p99", percentile(jitter, jitter_count, 0.99) / 1000, "us");
    harness_emit("switches", switches * 1e9 / wall, "/s");
    if (peer->report) peer->report();
}

static uint64_t virtual_fires;
static void count_fire(size_t unused) { (void)unused, virtual_fires++; }

static void arm_virtual(void *unused) {
    (void)unused;
    for (size_t i = 0; i < size; i++) peer->add_repeating(delays[i], i);
}

void virtual_time(uint64_t milliseconds) {
    when_fired = count_fire;
    round_periods();
    uint64_t start = now_ns();
    peer->virtual_run(milliseconds * 1000000, arm_virtual);
    harness_emit("per_fire", (double)(now_ns() - start) / (double)virtual_fires, "ns");
    harness_emit("fires", (double)virtual_fires, "");
}
