#define _GNU_SOURCE

#include "symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simulated.h"

/// The file of the program in memory; its length is 0 if it has no table of symbols.
static struct program {
    const char *bytes;
    size_t length;
} program;

static void map_program(void) {
    // A simulation does not answer these calls.
    unsigned *answers = rlk_set_simulated(NULL);
    int descriptor = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 && (size_t)status.st_size > sizeof(ElfW(Ehdr))) {
        void *bytes = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (bytes != MAP_FAILED) program = (struct program){bytes, status.st_size};
    }
    if (descriptor >= 0) close(descriptor);
    rlk_set_simulated(answers);
}

static int is_within(size_t offset, size_t length) {
    return offset <= program.length && length <= program.length - offset;
}

static const char *find_in(const ElfW(Shdr) *table, const ElfW(Shdr) *names, uintptr_t address) {
    const ElfW(Sym) *symbols = (const void *)(program.bytes + table->sh_offset);
    for (size_t index = 0; index < table->sh_size / sizeof *symbols; index++) {
        const ElfW(Sym) *symbol = &symbols[index];
        if ((symbol->st_info & 15) != STT_FUNC || address - symbol->st_value >= symbol->st_size) continue;
        return symbol->st_name < names->sh_size ? program.bytes + names->sh_offset + symbol->st_name : NULL;
    }
    return NULL;
}

const char *rlk_find_function(uintptr_t address) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, map_program);
    Dl_info image;
    struct link_map *map;
    // The program itself comes first, and has no name.
    if (!program.length || !dladdr1((void *)address, &image, (void **)&map, RTLD_DL_LINKMAP) || map->l_prev || *map->l_name)
        return NULL;
    const ElfW(Ehdr) *header = (const void *)program.bytes;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return NULL;
    if (!is_within(header->e_shoff, header->e_shnum * sizeof(ElfW(Shdr)))) return NULL;
    const ElfW(Shdr) *sections = (const void *)(program.bytes + header->e_shoff);
    for (int index = 0; index < header->e_shnum; index++) {
        const ElfW(Shdr) *table = &sections[index];
        if (table->sh_type != SHT_SYMTAB || table->sh_link >= header->e_shnum) continue;
        const ElfW(Shdr) *names = &sections[table->sh_link];
        if (!is_within(table->sh_offset, table->sh_size) || !is_within(names->sh_offset, names->sh_size)) continue;
        return find_in(table, names, address - map->l_addr);
    }
    return NULL;
}
