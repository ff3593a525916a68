#define _GNU_SOURCE
#include "include/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct rlk_mapped_file {
    atomic_int lost;
    // The number of owners: the maker, and each guarded mapping. Used with the lock.
    int owners;
    size_t length;
    char sentence[];
};

// One mapping. The signal handler walks the list without a lock, so a node stays in it, and is used again.
struct mapping {
    _Atomic(char *) start;
    size_t size;
    rlk_mapped_file *file;
    struct mapping *next;
};

static _Atomic(struct mapping *) mappings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction former;

rlk_mapped_file *rlk_make_mapped_file(const char *sentence) {
    size_t length = strlen(sentence);
    rlk_mapped_file *file = malloc(sizeof *file + length);
    if (file == NULL) return NULL;
    atomic_init(&file->lost, 0);
    file->owners = 1;
    file->length = length;
    memcpy(file->sentence, sentence, length);
    return file;
}

// Gives up one owner, and frees the file with the last. Called with the lock.
static void release(rlk_mapped_file *file) {
    file->owners -= 1;
    if (file->owners == 0) free(file);
}

void rlk_free_mapped_file(rlk_mapped_file *file) {
    pthread_mutex_lock(&lock);
    release(file);
    pthread_mutex_unlock(&lock);
}

int rlk_is_lost(const rlk_mapped_file *file) { return atomic_load_explicit(&file->lost, memory_order_relaxed); }

// Only what a signal handler may do.
static int replace(char *address) {
    for (struct mapping *mapping = atomic_load(&mappings); mapping != NULL; mapping = mapping->next) {
        char *start = atomic_load(&mapping->start);
        if (start == NULL || address < start || address >= start + mapping->size) continue;
        void *memory = mmap(
            start, mapping->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (memory == MAP_FAILED) return 0;
        if (atomic_exchange(&mapping->file->lost, 1) == 0) {
            ssize_t count = write(STDERR_FILENO, mapping->file->sentence, mapping->file->length);
            (void)count;
        }
        return 1;
    }
    return 0;
}

static void bus_error(int signal, siginfo_t *info, void *context) {
    int reason = errno;
    int is_fault = info->si_code > 0;
    if (is_fault && replace(info->si_addr)) {
        errno = reason;
        return;
    }
    if (former.sa_flags & SA_SIGINFO) {
        former.sa_sigaction(signal, info, context);
    } else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) {
        former.sa_handler(signal);
    } else if (is_fault || former.sa_handler == SIG_DFL) {
        // The instruction is repeated and ends the process, where it would have without this handler.
        sigaction(SIGBUS, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        if (!is_fault) raise(signal);
    }
    errno = reason;
}

static void install(void) {
    struct sigaction action = {.sa_sigaction = bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &former);
}

int rlk_guard_mapping(rlk_mapped_file *file, void *start, size_t size) {
    pthread_once(&once, install);
    pthread_mutex_lock(&lock);
    struct mapping *mapping = atomic_load(&mappings);
    while (mapping != NULL && atomic_load(&mapping->start) != NULL) mapping = mapping->next;
    int is_new = mapping == NULL;
    if (is_new) mapping = calloc(1, sizeof *mapping);
    if (mapping != NULL) {
        mapping->size = size;
        mapping->file = file;
        file->owners += 1;
        atomic_store(&mapping->start, start);
        if (is_new) {
            mapping->next = atomic_load(&mappings);
            atomic_store(&mappings, mapping);
        }
    }
    pthread_mutex_unlock(&lock);
    return mapping == NULL ? ENOMEM : 0;
}

void rlk_unguard_mapping(void *start) {
    pthread_mutex_lock(&lock);
    for (struct mapping *mapping = atomic_load(&mappings); mapping != NULL; mapping = mapping->next) {
        if (atomic_load(&mapping->start) == start) {
            atomic_store(&mapping->start, NULL);
            release(mapping->file);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}
