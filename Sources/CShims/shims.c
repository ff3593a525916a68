#define _GNU_SOURCE

#include "cshims.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

volatile unsigned rlk_forks;

static void count_fork(void) { rlk_forks++; }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

int rlk_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

int rlk_timerfd(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); }

int rlk_timerfd_set(int descriptor, int64_t nanoseconds) {
    struct itimerspec setting = {{0, 0}, {nanoseconds / 1000000000, nanoseconds % 1000000000}};
    return timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &setting, NULL);
}

int rlk_is_main_thread(void) { return getpid() == gettid(); }

void rlk_set_thread_name(const char *name) {
    char kept[16] = {0};
    strncpy(kept, name, sizeof kept - 1);
    pthread_setname_np(pthread_self(), kept);
}
