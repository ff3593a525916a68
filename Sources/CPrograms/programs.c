#define _GNU_SOURCE
#include "programs.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "children.h"
#include "simulated.h"

struct rlk_program_page *rlk_make_program(int *descriptor) {
    *descriptor = memfd_create("program", MFD_CLOEXEC);
    if (*descriptor < 0) return NULL;
    struct rlk_program_page *page = MAP_FAILED;
    if (ftruncate(*descriptor, sizeof *page) == 0)
        page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0);
    if (page != MAP_FAILED) return page;
    close(*descriptor);
    return NULL;
}

void rlk_empty_program(struct rlk_program_page *page, int descriptor) {
    madvise(page, sizeof *page, MADV_REMOVE);
    close(descriptor);
}

void rlk_free_program(struct rlk_program_page *page) { munmap(page, sizeof *page); }

int rlk_start_program(
    int descriptor, const char *path, char *const *arguments, char *const *environment, pid_t *process) {
    char *executables[] = {(char *)path, NULL};
    struct rlk_spawn_request request = {
        .executables = executables,
        .arguments = arguments,
        .environment = environment,
        .directory = "/",
        .streams = {descriptor, RLK_STREAM_INHERIT, RLK_STREAM_INHERIT},
    };
    struct rlk_failure failure;
    unsigned *answers = rlk_set_simulated(NULL);
    int former = personality(0xffffffff);
    personality(former | ADDR_NO_RANDOMIZE);
    int error = rlk_spawn(&request, process, &failure);
    personality(former);
    rlk_set_simulated(answers);
    return error;
}

static int has_ended(pid_t process) {
    siginfo_t info = {0};
    return waitid(P_PID, process, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == process;
}

void rlk_set_facts(struct rlk_program_page *page, const struct rlk_program_facts *facts) {
    page->simulation = (int32_t)syscall(SYS_getpid);
    page->process = facts->process, page->parent = facts->parent;
    page->user = facts->user, page->group = facts->group, page->mask = 022;
    page->is_explored = facts->is_explored;
    strncpy(page->host_name, facts->host_name, sizeof page->host_name - 1);
    strncpy(page->program_folder, facts->folder, sizeof page->program_folder - 1);
    memcpy(page->seed, facts->seed, sizeof page->seed);
}

void rlk_inherit(struct rlk_program_page *page, const struct rlk_program_page *former, int slot) {
    page->mask = former->mask, page->ignored = former->ignored;
    page->slots[0].blocked = former->slots[slot].blocked;
}

void rlk_fork(struct rlk_program_page *page, const struct rlk_program_page *former, int slot) {
    const struct rlk_slot *old = &former->slots[slot];
    struct rlk_slot *new = &page->slots[0];
    rlk_inherit(page, former, slot);
    page->handled = former->handled, page->distance = former->distance;
    memcpy(page->closes_on_exec, former->closes_on_exec, sizeof page->closes_on_exec);
    memcpy(page->clocks, former->clocks, sizeof page->clocks);
    memcpy(new->name, old->name, sizeof new->name);
    new->number = page->process, new->end_word = old->end_word;
}

int rlk_closes_on_exec(const struct rlk_program_page *page, int descriptor) { return page->closes_on_exec[descriptor]; }

/// Waits until a thread of the program gives its turn back, or the process ends. Returns the turn.
static uint32_t wait_for_pause(struct rlk_slot *slot, pid_t process) {
    // A process that was killed makes no request.
    const struct timespec look = {.tv_nsec = 10000000};
    uint32_t turn;
    while ((turn = atomic_load(&slot->turn)) == rlk_turn_of_program) {
        long status = syscall(SYS_futex, &slot->turn, FUTEX_WAIT, turn, &look, NULL, 0);
        if (status != 0 && errno == ETIMEDOUT && has_ended(process)) return atomic_load(&slot->turn);
    }
    return turn;
}

enum rlk_pause rlk_run_program(
    struct rlk_program_page *page, int slot_number, pid_t process, const int64_t clocks[4], struct rlk_asked *asked) {
    struct rlk_slot *slot = &page->slots[slot_number];
    unsigned *answers = rlk_set_simulated(NULL);
    memcpy(page->clocks, clocks, sizeof page->clocks);
    atomic_store(&slot->turn, rlk_turn_of_program);
    syscall(SYS_futex, &slot->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    uint32_t turn = wait_for_pause(slot, process);
    rlk_set_simulated(answers);
    if (turn == rlk_turn_over) {
        *asked = (struct rlk_asked){.arguments = {(int64_t)(intptr_t)slot->end_word}};
        return rlk_thread_has_ended;
    }
    if (turn == rlk_turn_of_program) return rlk_process_has_ended;
    *asked = (struct rlk_asked){
        .request = slot->request,
        .data = slot->data,
        .count = slot->count,
        .address = slot->address,
        .address_size = slot->address_size,
        .control = &slot->control,
    };
    memcpy(asked->arguments, slot->arguments, sizeof slot->arguments);
    return rlk_thread_asks;
}

void rlk_answer_program(struct rlk_program_page *page, int slot, int64_t result, size_t count, size_t address_size) {
    page->slots[slot].result = result;
    page->slots[slot].count = count;
    page->slots[slot].address_size = address_size;
}

int rlk_resize_mapped(struct rlk_mapped *mapped, size_t size) {
    if (mapped->descriptor < 0) mapped->descriptor = memfd_create("file", MFD_CLOEXEC);
    if (mapped->descriptor < 0 || ftruncate(mapped->descriptor, size) != 0) return errno;
    // The system unmaps what lies behind the end by itself.
    if (size > mapped->size) {
        if (mapped->bytes) munmap(mapped->bytes, mapped->size);
        mapped->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, mapped->descriptor, 0);
    }
    if (mapped->bytes == MAP_FAILED) mapped->bytes = NULL, mapped->size = 0;
    if (!mapped->bytes && size > 0) return ENOMEM;
    if (size > mapped->size) mapped->size = size;
    return 0;
}

void rlk_unmap(struct rlk_mapped *mapped) {
    if (mapped->bytes) munmap(mapped->bytes, mapped->size);
    if (mapped->descriptor >= 0) close(mapped->descriptor);
}

int rlk_kill_program(pid_t process) {
    unsigned *answers = rlk_set_simulated(NULL);
    int status = 0;
    kill(process, SIGKILL);
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {}
    rlk_set_simulated(answers);
    return status;
}

// MARK: Locks

const void *rlk_place_of(const struct rlk_program_page *page, int slot) { return &page->slots[slot]; }

/// Reads a program's memory. Returns 0 if there is none at the address.
static int read_memory(const struct rlk_program_page *page, uint64_t address, void *room, size_t size) {
    struct iovec own = {room, size}, other = {(void *)(uintptr_t)address, size};
    unsigned *answers = rlk_set_simulated(NULL);
    long count = process_vm_readv(page->real_process, &own, 1, &other, 1, 0);
    rlk_set_simulated(answers);
    return count == (long)size;
}

int rlk_find_slot_of_holder(const struct rlk_program_page *page, int slot) {
    const uint64_t address = page->slots[slot].holder;
    uint32_t holder = 0;
    if (address == 0 || !read_memory(page, address, &holder, sizeof holder)) return -1;
    holder &= FUTEX_TID_MASK;
    for (int index = 0; index < rlk_most_threads; index++)
        if (holder != 0 && (uint32_t)page->slots[index].number == holder) return index;
    return -1;
}

const char *rlk_name_of(const struct rlk_program_page *page, int slot) { return page->slots[slot].name; }

int rlk_find_callers(const struct rlk_program_page *page, int slot, uintptr_t *addresses, int room) {
    struct { uint64_t next, caller; } frame;
    uint64_t address = page->slots[slot].frame;
    int count = 0;
    for (; count < room && address != 0 && read_memory(page, address, &frame, sizeof frame); count++) {
        addresses[count] = frame.caller - page->distance;
        address = frame.next > address ? frame.next : 0;
    }
    return count;
}

// MARK: Signals

static int waits_for(const struct rlk_slot *slot, uint64_t bit) {
    return slot->number != 0 && (!(slot->blocked & bit) || slot->awaited & bit);
}

int rlk_signal_program(struct rlk_program_page *page, int slots, int signal) {
    const uint64_t bit = rlk_bit_of_signal(signal);
    int found = 0;
    // The first thread comes first.
    while (found < slots && !waits_for(&page->slots[found], bit)) found++;
    if (found == slots) {
        page->pending |= bit;
        return rlk_signal_is_blocked;
    }
    struct rlk_slot *slot = &page->slots[found];
    if (!(slot->awaited & bit)) {
        if (page->ignored & bit) return rlk_signal_is_ignored;
        if (!(page->handled & bit)) return rlk_harmless_signals() & bit ? rlk_signal_is_ignored : rlk_signal_ends_process;
    }
    slot->pending |= bit;
    return found;
}

int rlk_has_signal(const struct rlk_program_page *page, int slot_number) {
    const struct rlk_slot *slot = &page->slots[slot_number];
    return (slot->pending & (~slot->blocked | slot->awaited)) != 0;
}

int rlk_ignores_signal(const struct rlk_program_page *page, int signal) {
    return (page->ignored & rlk_bit_of_signal(signal)) != 0;
}

uint64_t rlk_pending_signals(const struct rlk_program_page *page, int slot, uint64_t set) {
    return (page->pending | page->slots[slot].pending) & set;
}

void rlk_take_signal(struct rlk_program_page *page, int slot, int signal) {
    const uint64_t bit = rlk_bit_of_signal(signal);
    uint64_t *pending = page->slots[slot].pending & bit ? &page->slots[slot].pending : &page->pending;
    *pending &= ~bit;
}
