#include "calls.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Mappings of a file, beside its reads and writes.

enum { file_count = 2, mapping_count = 4, page = 4096 };
static int files[file_count];
static struct mapping {
    unsigned char *bytes;
    int file, page_count, first_page, is_shared, protection;
} mappings[mapping_count];

static long size_of(int file) {
    struct stat status;
    return fstat(files[file], &status) == 0 ? (long)status.st_size : -1;
}

static void begin(void) {
    static const char *const names[] = {"one", "other"};
    for (int index = 0; index < file_count; index++) files[index] = open(names[index], O_RDWR | O_CREAT, 0600);
    // Nothing is mapped beyond the end of a file.
    for (int index = 0; index < file_count; index++) if (ftruncate(files[index], 4 * page + 100) != 0) _exit(3);
}

static void map(struct mapping *mapping) {
    if (mapping->bytes) munmap(mapping->bytes, (size_t)(mapping->page_count * page));
    *mapping = (struct mapping){
        NULL, chance(file_count), 1 + chance(3), chance(2), once_in(2), once_in(3) ? PROT_READ : PROT_READ | PROT_WRITE};
    int odd = once_in(40), bad = once_in(40);
    tell("mmap(%d, %d, %d, %d, %x, %d)", mapping->file, mapping->page_count, mapping->first_page, mapping->is_shared,
         (unsigned)mapping->protection, odd + 2 * bad);
    void *bytes = mmap(
        NULL, (size_t)(mapping->page_count * page), mapping->protection, mapping->is_shared ? MAP_SHARED : MAP_PRIVATE,
        bad ? 77 : files[mapping->file], mapping->first_page * page + odd * 10);
    tell_result(bytes == MAP_FAILED ? -1 : 0);
    mapping->bytes = bytes == MAP_FAILED ? NULL : bytes;
}

/// The place of a byte: in the file's pages, near an edge.
static int place_in(const struct mapping *mapping) {
    return chance(mapping->page_count) * page + (once_in(2) ? chance(100) : page - 1 - chance(100));
}

static void call(void) {
    int number = chance(100), file = chance(file_count);
    struct mapping *mapping = &mappings[chance(mapping_count)];
    unsigned char data[3 * page];
    int length = once_in(3) ? chance((int)sizeof data) : chance(50), offset = chance(4 * page);
    if (number < 15 || (number < 65 && !mapping->bytes)) return map(mapping);
    if (number < 40) {
        int place = place_in(mapping);
        if (mapping->protection == PROT_READ) return tell("nothing");
        mapping->bytes[place] = (unsigned char)chance(256);
        tell("set %d %d", mapping->file, place);
    } else if (number < 60) {
        // A private mapping may have the file's later bytes, or not.
        if (!mapping->is_shared) return tell("nothing");
        tell("hash %d", mapping->file);
        tell_bytes(mapping->bytes, mapping->page_count * page);
    } else if (number < 65) {
        tell("msync(%d)", mapping->file);
        tell_result(msync(mapping->bytes, (size_t)(mapping->page_count * page), once_in(2) ? MS_SYNC : MS_ASYNC));
    } else if (number < 80) {
        memset(data, length + offset, (size_t)length);
        tell("pwrite(%d, %d, %d)", file, length, offset);
        tell_result(pwrite(files[file], data, (size_t)length, offset));
    } else if (number < 95) {
        tell("pread(%d, %d, %d)", file, length, offset);
        tell_bytes(data, tell_result(pread(files[file], data, (size_t)length, offset)));
    } else {
        long size = 4 * page + 100 + chance(2 * page);
        if (size < size_of(file)) return tell("nothing");
        tell("ftruncate(%d, %ld)", file, size);
        tell_result(ftruncate(files[file], size));
    }
}

const struct kind mapping_kind = {"mappings", begin, call};
