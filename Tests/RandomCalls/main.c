#include "calls.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// RandomCalls KIND SEED FIRST LAST STEP FOLDER: makes the calls with the numbers FIRST to LAST in the folder, and writes a
// line for each to the file `lines`. Steps of time last STEP microseconds.

static FILE *lines;
static uint64_t state;
long step;

static uint64_t mix(uint64_t number) {
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}

int chance(int limit) { return (int)(mix(state += 0x9e3779b97f4a7c15) % (uint64_t)limit); }

void tell(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(lines, format, arguments);
    va_end(arguments);
}

long tell_result(long result) {
    int error = errno;
    if (result < 0) tell(" = %s", strerrorname_np(error));
    else tell(" = %ld", result);
    return result;
}

void tell_bytes(const void *bytes, long count) {
    uint64_t hash = 0;
    for (long index = 0; index < count; index++) hash = mix(hash + ((const unsigned char *)bytes)[index] + 1);
    if (count > 0) tell(" #%04x", (unsigned)(hash & 0xffff));
}

struct timespec steps(long count) {
    long time = count * step;
    return (struct timespec){time / 1000000000, time % 1000000000};
}

void rest(long nanoseconds) {
    struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    nanosleep(&time, NULL);
}

int main(int count, char **arguments) {
    const struct kind *const kinds[] = {&set_kind, &timer_kind, &stream_kind, &futex_kind, &lock_kind, &mapping_kind};
    // As on a host, the program's descriptors begin at 3.
    closefrom(3);
    if (count != 7 || chdir(arguments[6]) != 0 || !(lines = fopen("lines", "w"))) return 2;
    setlinebuf(lines);
    // Other programs of a busy machine make this one late.
    setpriority(PRIO_PROCESS, 0, -20);
    signal(SIGPIPE, SIG_IGN);
    uint64_t seed = mix(strtoull(arguments[2], NULL, 10));
    long first = atol(arguments[3]), last = atol(arguments[4]);
    step = atol(arguments[5]) * 1000;
    for (size_t index = 0; index < sizeof kinds / sizeof *kinds; index++) {
        const struct kind *kind = kinds[index];
        if (strcmp(kind->name, arguments[1]) != 0) continue;
        kind->begin();
        for (long number = first; number <= last; number++) {
            state = mix(seed + (uint64_t)number);
            tell("%ld ", number);
            kind->call();
            tell("\n");
        }
        // Threads may still wait.
        fflush(lines);
        _exit(0);
    }
    return 2;
}
