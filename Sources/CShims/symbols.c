#define _GNU_SOURCE

#include "symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simulated.h"

/// The file of a program in memory; its length is 0 if it cannot be read.
struct program {
    const char *bytes;
    size_t length;
};

static struct program map_program(const char *path) {
    struct program program = {0};
    // A simulation does not answer these calls.
    unsigned *answers = rlk_set_simulated(NULL);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 && (size_t)status.st_size > sizeof(ElfW(Ehdr))) {
        void *bytes = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (bytes != MAP_FAILED) program = (struct program){bytes, status.st_size};
    }
    if (descriptor >= 0) close(descriptor);
    rlk_set_simulated(answers);
    return program;
}

static int is_within(struct program program, size_t offset, size_t length) {
    return offset <= program.length && length <= program.length - offset;
}

static const char *
find_symbol(struct program program, const ElfW(Shdr) *table, const ElfW(Shdr) *names, uintptr_t address) {
    const ElfW(Sym) *symbols = (const void *)(program.bytes + table->sh_offset);
    for (size_t index = 0; index < table->sh_size / sizeof *symbols; index++) {
        const ElfW(Sym) *symbol = &symbols[index];
        if ((symbol->st_info & 15) != STT_FUNC || address - symbol->st_value >= symbol->st_size) continue;
        return symbol->st_name < names->sh_size ? program.bytes + names->sh_offset + symbol->st_name : NULL;
    }
    return NULL;
}

static const char *find_function(struct program program, uintptr_t address) {
    const ElfW(Ehdr) *header = (const void *)program.bytes;
    if (!program.length || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return NULL;
    if (!is_within(program, header->e_shoff, header->e_shnum * sizeof(ElfW(Shdr)))) return NULL;
    const ElfW(Shdr) *sections = (const void *)(program.bytes + header->e_shoff);
    for (int index = 0; index < header->e_shnum; index++) {
        const ElfW(Shdr) *table = &sections[index];
        if (table->sh_type != SHT_SYMTAB || table->sh_link >= header->e_shnum) continue;
        const ElfW(Shdr) *names = &sections[table->sh_link];
        if (!is_within(program, table->sh_offset, table->sh_size)) continue;
        if (!is_within(program, names->sh_offset, names->sh_size)) continue;
        return find_symbol(program, table, names, address);
    }
    return NULL;
}

static struct program own_program;

static void map_own_program(void) { own_program = map_program("/proc/self/exe"); }

const char *rlk_find_function(uintptr_t address) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, map_own_program);
    Dl_info image;
    struct link_map *map;
    // The program itself comes first, and has no name.
    if (!dladdr1((void *)address, &image, (void **)&map, RTLD_DL_LINKMAP) || map->l_prev || *map->l_name) return NULL;
    return find_function(own_program, address - map->l_addr);
}

/// Puts a name of Swift's into words. Part of Swift's runtime, which a program without Swift does not have.
extern char *swift_demangle(const char *name, size_t length, char *room, size_t *size, uint32_t flags)
    __attribute__((weak));

char *rlk_describe_function_in(const char *path, uintptr_t address) {
    struct program program = map_program(path);
    const char *name = find_function(program, address);
    char *words = name && swift_demangle ? swift_demangle(name, strlen(name), NULL, NULL, 0) : NULL;
    if (name && !words) words = strdup(name);
    if (program.length) munmap((void *)program.bytes, program.length);
    return words;
}
