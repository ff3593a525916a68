#include "preload.h"

#if defined(__x86_64__)

#include <elf.h>
#include <link.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>

// The beginning of a program, before any of its own code: the dynamic linker calls `begin` while it links this library.

struct rlk_program_page *page;

static __thread struct rlk_slot *slot_of_thread __attribute__((tls_model("initial-exec")));

// While the first thread is the only one, the dynamic linker may not have made room for its variables.
struct rlk_slot *own_slot(void) { return has_threads() && slot_of_thread ? slot_of_thread : &page->slots[0]; }
void set_own_slot(struct rlk_slot *slot) { slot_of_thread = slot; }

// MARK: Catching calls

/// Returns from a signal's handler. The C library's function would make a call that comes back here.
__attribute__((naked, used)) HIDDEN void return_from_handler(void) {
    __asm__("mov $15, %eax\n"
            "syscall\n");
}

/// Called on the thread that made a call, with all signals blocked.
static void meet_call(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    struct call call = {
        registers[REG_RAX], registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
        registers[REG_R10], registers[REG_R8],  registers[REG_R9],  context};
    if (receive_before(&call)) return;
    const uint64_t *set = set_named_by(&call);
    long result = set ? answer_with_set(&call, *set) : answer(&call);
    registers[REG_RAX] = result;
    receive_after(&call, result);
}

/// What the kernel reads for each call: one that blocks.
static const char blocks = 1;
/// The bounds of the library's instructions.
extern const char __ehdr_start[] HIDDEN;
static uintptr_t code, code_size;

void catch_calls(void) {
    enum { set_dispatch = 59, is_on = 1 };
    kernel(SYS_prctl, set_dispatch, is_on, (long)code, (long)code_size, (long)&blocks, 0);
}

static void find_code(void) {
    const ElfW(Ehdr) *header = (const void *)__ehdr_start;
    const ElfW(Phdr) *segments = (const void *)(__ehdr_start + header->e_phoff);
    for (int index = 0; index < header->e_phnum; index++) {
        if (segments[index].p_type != PT_LOAD || !(segments[index].p_flags & PF_X)) continue;
        code = (uintptr_t)__ehdr_start + segments[index].p_vaddr;
        code_size = segments[index].p_memsz;
    }
}

/// As the kernel has it.
struct action {
    void (*handler)(int, siginfo_t *, void *);
    uint64_t flags;
    void (*restorer)(void);
    uint64_t mask;
};

static void install_handler(void) {
    enum { has_restorer = 0x04000000 };
    struct action action = {meet_call, SA_SIGINFO | has_restorer, return_from_handler, ~0ull};
    kernel(SYS_rt_sigaction, SIGSYS, (long)&action, 0, 8, 0, 0);
}

// MARK: Functions of the kernel

// The kernel gives each process a few functions, which read clocks and chance without a call. They are overwritten.

static int show_clock(clockid_t clock, struct timespec *time) {
    int64_t now = show(clock);
    *time = (struct timespec){now / 1000000000, now % 1000000000};
    return 0;
}

static int show_resolution(clockid_t clock, struct timespec *time) {
    (void)clock;
    if (time) *time = (struct timespec){0, 1};
    return 0;
}

static int show_time_of_day(struct timeval *time, struct timezone *zone) {
    int64_t now = show(CLOCK_REALTIME);
    if (time) *time = (struct timeval){now / 1000000000, now % 1000000000 / 1000};
    if (zone) *zone = (struct timezone){0, 0};
    return 0;
}

static time_t show_seconds(time_t *time) {
    time_t now = show(CLOCK_REALTIME) / 1000000000;
    if (time) *time = now;
    return now;
}

static long show_processor(unsigned *processor, unsigned *node) {
    if (processor) *processor = 0;
    if (node) *node = 0;
    return 0;
}

/// With no memory, it is asked for the size of a state.
static long give_chance(void *bytes, size_t count, unsigned flags, void *state, size_t size) {
    (void)flags, (void)state;
    if (size == ~0ul) return -ENOSYS;
    fill_with_chance(bytes, count);
    return (long)count;
}

static void *replacement(const char *name) {
    static const struct {
        const char *name;
        void *function;
    } all[] = {
        {"__vdso_clock_gettime", show_clock}, {"__vdso_clock_getres", show_resolution},
        {"__vdso_gettimeofday", show_time_of_day}, {"__vdso_time", show_seconds}, {"__vdso_getcpu", show_processor},
        {"__vdso_getrandom", give_chance}};
    for (size_t index = 0; index < sizeof all / sizeof *all; index++)
        if (strcmp(name, all[index].name) == 0) return all[index].function;
    return NULL;
}

/// Writes a jump to another function over the beginning of one.
static void overwrite(char *function, void *replacement) {
    // mov $replacement, %rax; jmp *%rax
    memcpy(function, "\x48\xb8", 2);
    memcpy(function + 2, &replacement, 8);
    memcpy(function + 10, "\xff\xe0", 2);
}

static void replace_in(char *image) {
    const ElfW(Ehdr) *header = (const void *)image;
    const ElfW(Phdr) *segments = (const void *)(image + header->e_phoff);
    const ElfW(Dyn) *dynamic = NULL;
    uintptr_t offset = 0;
    size_t size = 0;
    for (int index = 0; index < header->e_phnum; index++) {
        if (segments[index].p_type == PT_DYNAMIC) dynamic = (const void *)(image + segments[index].p_offset);
        if (segments[index].p_type != PT_LOAD) continue;
        offset = (uintptr_t)image + segments[index].p_offset - segments[index].p_vaddr;
        size = segments[index].p_offset + segments[index].p_memsz;
    }
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_SYMTAB) symbols = (const void *)(dynamic->d_un.d_ptr + offset);
        if (dynamic->d_tag == DT_STRTAB) names = (const void *)(dynamic->d_un.d_ptr + offset);
    }
    if (!symbols || !names) return;
    size = (size + 4095) & ~4095ul;
    if (kernel(SYS_mprotect, (long)image, (long)size, PROT_READ | PROT_WRITE | PROT_EXEC, 0, 0, 0) != 0) return;
    // The names follow the symbols.
    for (const ElfW(Sym) *symbol = symbols; (const char *)(symbol + 1) <= names; symbol++) {
        void *function = replacement(names + symbol->st_name);
        if (function && symbol->st_value) overwrite((char *)offset + symbol->st_value, function);
    }
    kernel(SYS_mprotect, (long)image, (long)size, PROT_READ | PROT_EXEC, 0, 0, 0);
}

// MARK: The beginning

/// Calls a function with each value that the kernel has given the process, and its kind.
static void begin_with_values(void) {
    ElfW(auxv_t) values[64];
    int file = kernel(SYS_openat, AT_FDCWD, (long)"/proc/self/auxv", O_RDONLY, 0, 0, 0);
    long size = kernel(SYS_read, file, (long)values, sizeof values, 0, 0, 0);
    kernel(SYS_close, file, 0, 0, 0, 0, 0);
    for (long index = 0; (index + 1) * (long)sizeof *values <= size; index++) {
        if (values[index].a_type == AT_SYSINFO_EHDR) replace_in((char *)values[index].a_un.a_val);
        if (values[index].a_type == AT_PHDR) {
            const ElfW(Phdr) *segments = (const void *)values[index].a_un.a_val;
            if (segments->p_type == PT_PHDR) page->distance = values[index].a_un.a_val - segments->p_vaddr;
        }
        // Some take the seed of their chance from here.
        if (values[index].a_type == AT_RANDOM) fill_with_chance((void *)values[index].a_un.a_val, 16);
    }
}

/// The page is the standard input of a process that is to be simulated.
static int find_page(void) {
    char variables[65536];
    int file = kernel(SYS_openat, AT_FDCWD, (long)"/proc/self/environ", O_RDONLY, 0, 0, 0);
    long size = kernel(SYS_read, file, (long)variables, sizeof variables - 1, 0, 0, 0);
    kernel(SYS_close, file, 0, 0, 0, 0, 0);
    if (size <= 0) return 0;
    variables[size] = 0;
    int is_simulated = 0;
    for (const char *line = variables; line < variables + size; line += strlen(line) + 1)
        if (strcmp(line, "RUNLOOPKIT_PROGRAM=1") == 0) is_simulated = 1;
    if (!is_simulated) return 0;
    long memory = kernel(
        SYS_mmap, 0, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, 0, 0);
    if (memory < 0) return 0;
    page = (struct rlk_program_page *)memory;
    int nothing = kernel(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR, 0, 0, 0);
    kernel(SYS_dup2, nothing, 0, 0, 0, 0, 0);
    kernel(SYS_close, nothing, 0, 0, 0, 0, 0);
    return 1;
}

/// Gives the first thread its number, for its locks.
static void set_first_number(void) {
    enum { get_address = 40 };
    struct rlk_slot *slot = own_slot();
    slot->number = page->process;
    page->real_process = kernel(SYS_getpid, 0, 0, 0, 0, 0, 0);
    slot->real_number = kernel(SYS_gettid, 0, 0, 0, 0, 0, 0);
    int32_t *word = NULL;
    if (kernel(SYS_prctl, get_address, (long)&word, 0, 0, 0, 0) == 0 && word) *word = slot->number;
    slot->end_word = (uint32_t *)word;
}

static void begin_process(void) {
    if (!find_page()) return;
    kernel(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
    await_turn(own_slot());
    find_code();
    begin_with_values();
    set_first_number();
    install_handler();
    inherit_signals();
    catch_calls();
}

static void begun(void) {}

/// The dynamic linker asks for the function behind a name, and so calls this before it calls any other library.
__attribute__((used)) static void (*begin(void))(void) {
    begin_process();
    return begun;
}

__attribute__((visibility("default"), ifunc("begin"))) void rlk_preload(void);
/// A name that the dynamic linker has to find.
__attribute__((used)) static void (*const preload)(void) = rlk_preload;

// MARK: Memory

// The C library's functions have not been found when the above is called, and the compiler uses these by itself.

HIDDEN void *memcpy(void *restrict to, const void *restrict from, size_t count) {
    void *result = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    return result;
}

HIDDEN void *memset(void *to, int value, size_t count) {
    void *result = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(value) : "memory");
    return result;
}

HIDDEN size_t strlen(const char *text) {
    const char *end = text;
    while (*end) end++;
    return (size_t)(end - text);
}

HIDDEN int strcmp(const char *one, const char *other) {
    while (*one && *one == *other) one++, other++;
    return (unsigned char)*one - (unsigned char)*other;
}

#endif
