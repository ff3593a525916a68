#define _GNU_SOURCE
#include "measure.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t nanoseconds(struct timeval time) {
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

uint64_t cpu_ns(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
}

uint64_t context_switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_nvcsw;
}

uint64_t resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long total = 0, resident = 0;
    if (!file || fscanf(file, "%lu %lu", &total, &resident) != 2) abort();
    fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t budget_ns(void) {
    const char *seconds = getenv("BENCH_BUDGET");
    return (seconds ? strtoull(seconds, NULL, 10) : 20) * 1000000000;
}

static int compare(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

double percentile(int64_t *values, size_t count, double fraction) {
    if (!count) return 0;
    qsort(values, count, sizeof *values, compare);
    return (double)values[(size_t)(fraction * (double)(count - 1) + 0.5)];
}

double median(int64_t *values, size_t count) { return percentile(values, count, 0.5); }

void harness_emit(const char *metric, double value, const char *unit) {
    printf("%s\t%.3f\t%s\n", metric, value, unit);
    fflush(stdout);
}

void give_up(const char *why) {
    printf("gave up\t%s\n", why);
    fflush(stdout);
    _exit(0);
}

void *zeroed(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) abort();
    // The compiler would turn `memset` into a `calloc`, whose pages do not exist before they are written: every peer's
    // timer would seem to take 8 more bytes of memory.
    explicit_bzero(memory, bytes);
    return memory;
}

// Knuth's 64-bit linear congruential generator; the upper 31 bits of two steps make a draw.
static uint64_t state;
void seed_random(uint64_t seed) { state = seed; }
static uint64_t draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}
uint64_t random_bits(void) {
    uint64_t high = draw();
    return high << 31 | draw();
}

uint64_t *delays;
uint32_t *permutation;
Handle *handles;

void make_inputs(uint64_t low, uint64_t high) {
    delays = zeroed(size * sizeof *delays);
    permutation = zeroed(size * sizeof *permutation);
    handles = zeroed(size * sizeof *handles);
    seed_random(42);
    for (size_t i = 0; i < size; i++) delays[i] = low + random_bits() % (high - low);
    seed_random(43);
    for (size_t i = 0; i < size; i++) permutation[i] = (uint32_t)i;
    for (size_t i = size - 1; i > 0; i--) {
        size_t j = random_bits() % (i + 1);
        uint32_t other = permutation[i];
        permutation[i] = permutation[j];
        permutation[j] = other;
    }
}

void on_loop(Task task, void *argument) {
    if (peer->on_loop) peer->on_loop(task, argument);
    else task(argument);
}

void sync_time(void) {
    if (peer->sync_time) peer->sync_time();
}

static void run_on(bool zero, bool one) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (zero) CPU_SET(0, &set);
    if (one) CPU_SET(1, &set);
    sched_setaffinity(0, sizeof set, &set);
}

void place_other_thread(void) {
    const char *placement = getenv("BENCH_PLACEMENT");
    if (!placement || !strcmp(placement, "same")) return;
    run_on(!strcmp(placement, "both"), true);
}

void place_loop_thread(void) {
    // Threads of a pool come and go; each is placed when it first runs a callback.
    static __thread bool placed;
    if (placed) return;
    placed = true;
    if (getenv("BENCH_PLACEMENT")) run_on(true, false);
}
