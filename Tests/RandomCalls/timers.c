#include "calls.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

// Timers of `timerfd`. The calls are made amid steps of time, and the dates lie at their ends.

enum { count = 4 };
static int timers[count];
/// The time at which the present step began.
static long begun;

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

static int clock_of(int index) {
    static const int clocks[] = {CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME, CLOCK_MONOTONIC};
    return clocks[index];
}

static void open_timer(int index) { timers[index] = timerfd_create(clock_of(index), index == 3 ? 0 : TFD_NONBLOCK); }

static void begin(void) {
    for (int index = 0; index < count; index++) open_timer(index);
    begun = now();
}

/// Waits until the middle of a later step.
static void go_on(long steps) {
    begun += steps * step;
    struct timespec date = {begun / 1000000000, begun % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &date, NULL);
}

static struct timespec length(long time) {
    if (time < 0 && once_in(2)) return (struct timespec){0, time};
    return (struct timespec){time / 1000000000, time % 1000000000};
}

/// Tells of the number of steps that are left, of a time from now on.
static void tell_steps(struct timespec left) {
    long time = left.tv_sec * 1000000000 + left.tv_nsec;
    tell(" %ld", time == 0 ? 0 : 1 + (time + now() - begun) / step);
}

static void set(int index) {
    long wait = once_in(5) ? 0 : once_in(40) ? -1 : 1 + chance(6), period = once_in(2) ? 0 : once_in(40) ? -1 : 1 + chance(3);
    int is_date = once_in(3), is_past = is_date && once_in(4), flags = once_in(60) ? 0x40 : 0;
    struct itimerspec former = {0}, time = {length(period > 0 ? period * step : period), {0, 0}};
    // Half a step later than the call's, so that it is not near it.
    long first = wait > 0 ? wait * step - step / 2 : wait;
    if (is_date && wait > 0) {
        struct timespec present;
        clock_gettime(clock_of(index), &present);
        first += present.tv_sec * 1000000000 + present.tv_nsec - now() + begun;
        if (is_past) first -= 20 * step;
    } else if (wait > 0) {
        first -= now() - begun;
    }
    time.it_value = length(first);
    tell("timerfd_settime(%d, %d, %ld, %ld, %d)", index, is_date | flags, wait, period, is_past);
    if (tell_result(timerfd_settime(timers[index], is_date | flags, &time, &former)) < 0) return;
    tell_steps(former.it_value);
    tell(" %ld", (former.it_interval.tv_sec * 1000000000 + former.it_interval.tv_nsec) / step);
}

static void get(int index) {
    struct itimerspec time = {0};
    tell("timerfd_gettime(%d)", index);
    if (tell_result(timerfd_gettime(timers[index], &time)) < 0) return;
    tell_steps(time.it_value);
    tell(" %ld", (time.it_interval.tv_sec * 1000000000 + time.it_interval.tv_nsec) / step);
}

static void take(int index) {
    uint64_t number = 0;
    struct pollfd request = {timers[index], POLLIN | POLLOUT, 0};
    // One that blocks is read only if it has a number.
    if (index == 3 && poll(&request, 1, 0) == 0) return tell("nothing");
    tell("read(%d)", index);
    if (tell_result(read(timers[index], &number, once_in(20) ? 4 : 8)) > 0) tell(" %lu", number);
}

static void look(void) {
    struct pollfd requests[count];
    for (int index = 0; index < count; index++) requests[index] = (struct pollfd){timers[index], POLLIN | POLLOUT, 0};
    tell("poll()");
    tell_result(poll(requests, count, 0));
    for (int index = 0; index < count; index++) tell(" %x", requests[index].revents);
}

static void call(void) {
    int number = chance(100);
    int index = chance(count);
    if (number < 30) set(index);
    else if (number < 45) get(index);
    else if (number < 65) take(index);
    else if (number < 75) look();
    else if (number < 78) tell("open %d", index), close(timers[index]), open_timer(index);
    else tell("rest"), go_on(1 + chance(3));
}

const struct kind timer_kind = {"timers", begin, call};
