#define _GNU_SOURCE

#include "cshims.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

// Initial-exec: 6 instructions, where a key of the C library takes 24.
static _Thread_local void *thread_object __attribute__((tls_model("initial-exec")));

void *rlk_get_thread_object(void) { return thread_object; }
void rlk_set_thread_object(void *object) { thread_object = object; }

static _Thread_local void *thread_tape __attribute__((tls_model("initial-exec")));

void *rlk_get_thread_tape(void) { return thread_tape; }
void rlk_set_thread_tape(void *tape) { thread_tape = tape; }

// The first frame of the calling thread, if `rlk_start_thread` has started it.
static _Thread_local jmp_buf *first_frame __attribute__((tls_model("initial-exec")));

struct start {
    void *(*run)(void *);
    void *context;
};

// The first key that is not in use when this code is loaded. Earlier keys are the system's, such as a
// sanitizer's or an allocator's, which have to learn of the end of each thread.
static pthread_key_t first_key;

__attribute__((constructor)) static void find_first_key(void) {
    if (pthread_key_create(&first_key, NULL) == 0) pthread_key_delete(first_key);
}

static void *run_thread(void *raw) {
    struct start start = *(struct start *)raw;
    free(raw);
    jmp_buf frame;
    first_frame = &frame;
    if (_setjmp(frame) == 0) {
        start.run(start.context);
    } else {
        // Their destructors would run code of the program.
        for (pthread_key_t key = first_key; key < PTHREAD_KEYS_MAX; key++)
            if (pthread_getspecific(key)) pthread_setspecific(key, NULL);
    }
    first_frame = NULL;
    return NULL;
}

int rlk_start_thread(pthread_t *thread, void *(*run)(void *), void *context) {
    struct start *start = malloc(sizeof *start);
    if (!start) return ENOMEM;
    *start = (struct start){run, context};
    // A simulation knows it.
    unsigned *answers = rlk_set_simulated(NULL);
    int status = pthread_create(thread, NULL, run_thread, start);
    rlk_set_simulated(answers);
    if (status != 0) free(start);
    return status;
}

int rlk_join_if_ended(pthread_t thread) { return pthread_tryjoin_np(thread, NULL) == 0; }

void rlk_end_thread(void) { longjmp(*first_frame, 1); }

// Not by its number, which on a fiber is the carrier's.
static uintptr_t main_thread;

static void find_main_thread(void) { main_thread = getpid() == gettid() ? rlk_thread_pointer() : 0; }

int rlk_is_main_thread(void) { return main_thread ? rlk_thread_pointer() == main_thread : getpid() == gettid(); }

volatile unsigned rlk_forks;

// The main thread of a child is the one that has forked.
static void count_fork(void) {
    rlk_forks++;
    main_thread = rlk_thread_pointer();
}

__attribute__((constructor)) static void watch_forks(void) {
    find_main_thread();
    pthread_atfork(NULL, NULL, count_fork);
}

// LeakSanitizer, where a program has it, would take for lost what only these pages lead to.
__attribute__((weak)) void __lsan_register_root_region(const void *pages, size_t bytes);
__attribute__((weak)) void __lsan_unregister_root_region(const void *pages, size_t bytes);

void *rlk_make_pages(size_t bytes) {
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    if (__lsan_register_root_region) __lsan_register_root_region(pages, bytes);
    return pages;
}

void *rlk_resize_pages(void *pages, size_t bytes, size_t new_bytes) {
    void *resized = mremap(pages, bytes, new_bytes, MREMAP_MAYMOVE);
    if (resized == MAP_FAILED) return NULL;
    if (__lsan_register_root_region) {
        __lsan_unregister_root_region(pages, bytes);
        __lsan_register_root_region(resized, new_bytes);
    }
    return resized;
}

int rlk_make_memory(void) { return memfd_create("RunLoopKit", MFD_CLOEXEC); }

size_t rlk_allocated_size(const void *address) { return malloc_usable_size((void *)address); }

void rlk_give_back_pages(void *pages, size_t bytes) {
    if (__lsan_unregister_root_region) __lsan_unregister_root_region(pages, bytes);
    munmap(pages, bytes);
}

int rlk_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

int rlk_timerfd(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); }

int rlk_timerfd_set(int descriptor, int64_t nanoseconds) {
    struct itimerspec setting = {{0, 0}, {nanoseconds / 1000000000, nanoseconds % 1000000000}};
    return timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &setting, NULL);
}

int rlk_return_addresses(uintptr_t *addresses, int most) { return backtrace((void **)addresses, most); }

int rlk_thread_id(void) {
    int carrier = rlk_carrier_number();
    return carrier ? carrier : gettid();
}

int (*rlk_lock_mutex)(pthread_mutex_t *) = pthread_mutex_lock;
int (*rlk_unlock_mutex)(pthread_mutex_t *) = pthread_mutex_unlock;

int rlk_processor_count(void) {
    cpu_set_t processors;
    return sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : 1;
}

int64_t rlk_thread_time(int thread) {
    // The clock that pthread_getcpuclockid names; that function takes no thread that may have ended.
    struct timespec time;
    if (clock_gettime(((clockid_t)~thread << 3) | 6, &time) != 0) return -1;
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int rlk_thread_sleeps(int thread) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    // The number, the name in parentheses, the state.
    char text[64] = {0};
    ssize_t length = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    char *end = length > 0 ? strrchr(text, ')') : NULL;
    return end && strncmp(end, ") S", 3) == 0;
}

// The system would return the carrier's name.
static _Thread_local char thread_name[16];

void rlk_set_thread_name(const char *name) {
    strncpy(thread_name, name, sizeof thread_name - 1);
    pthread_setname_np(pthread_self(), thread_name);
}

void rlk_get_thread_name(void *name) {
    memset(name, 0, 16);
    if (rlk_is_main_thread()) {
        memcpy(name, "main", 4);
    } else if (rlk_is_carried()) {
        memcpy(name, thread_name, sizeof thread_name);
    } else {
        prctl(PR_GET_NAME, name);
    }
}

extern uint64_t swift_task_getJobTaskId(void *job) __attribute__((swiftcall));

uint64_t rlk_task_number(uintptr_t job) { return swift_task_getJobTaskId((void *)job); }

// libdispatch exports these for CoreFoundation, which serves the main queue in the same way. Weak, because a program
// without tasks need not load libdispatch.
__attribute__((weak)) extern int _dispatch_get_main_queue_handle_4CF(void);
__attribute__((weak)) extern void _dispatch_main_queue_callback_4CF(void *message);

int rlk_main_queue_descriptor(void) {
    static _Atomic int known = -1;
    if (known >= 0) return known;
    if (_dispatch_get_main_queue_handle_4CF == NULL || _dispatch_main_queue_callback_4CF == NULL) {
        errno = ENOSYS;
        return -1;
    }
    // libdispatch makes the descriptor when it is first asked, and traps without a word if it cannot.
    int room = rlk_eventfd();
    if (room < 0) return -1;
    close(room);
    int found = _dispatch_get_main_queue_handle_4CF();
    known = found;
    return found;
}

void rlk_drain_main_queue(void) {
    // The descriptor stays readable until it is read.
    uint64_t count;
    while (read(_dispatch_get_main_queue_handle_4CF(), &count, sizeof count) > 0) {}
    _dispatch_main_queue_callback_4CF(NULL);
}

int rlk_clock_watch(void) {
    int descriptor = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (descriptor < 0) return -1;
    // In 2106: far away, but not so far that the kernel's arithmetic saturates. Then it reports once for nothing.
    struct itimerspec far = {.it_value = {.tv_sec = INT32_MAX * 2LL}};
    timerfd_settime(descriptor, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
    return descriptor;
}

void rlk_clock_watch_read(int descriptor) {
    uint64_t expirations;
    // Fails with ECANCELED, and reports the next time.
    while (read(descriptor, &expirations, sizeof expirations) < 0 && errno == EINTR) {}
}

int rlk_find_epoll(int watched) {
    DIR *directory = opendir("/proc/self/fd");
    if (directory == NULL) return -1;
    int found = -1;
    char *line = NULL;
    size_t room = 0;
    for (struct dirent *entry; found < 0 && (entry = readdir(directory)) != NULL;) {
        char path[64], kind[32];
        snprintf(path, sizeof path, "/proc/self/fd/%.20s", entry->d_name);
        ssize_t length = readlink(path, kind, sizeof kind);
        if (length < 0 || memmem(kind, length, "[eventpoll]", 11) == NULL) continue;
        snprintf(path, sizeof path, "/proc/self/fdinfo/%.20s", entry->d_name);
        FILE *info = fopen(path, "re");
        if (info == NULL) continue;
        for (int target; found < 0 && getline(&line, &room, info) > 0;)
            if (sscanf(line, "tfd: %d", &target) == 1 && target == watched) found = atoi(entry->d_name);
        fclose(info);
    }
    free(line);
    closedir(directory);
    return found;
}
