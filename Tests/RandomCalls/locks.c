#include "calls.h"

#include <fcntl.h>
#include <unistd.h>

// Locks of parts of a file: of the process, and of several open files.

enum { count = 4 };
static int files[count];

static void open_file(int index) { files[index] = open("locked", index == 3 ? O_RDONLY : O_RDWR | O_CREAT, 0600); }

static void begin(void) {
    for (int index = 0; index < count; index++) open_file(index);
    if (ftruncate(files[0], 20) != 0) _exit(3);
}

static void lock(void) {
    static const int operations[] = {F_GETLK, F_SETLK, F_OFD_GETLK, F_OFD_SETLK};
    static const short kinds[] = {F_RDLCK, F_WRLCK, F_UNLCK}, origins[] = {SEEK_SET, SEEK_CUR, SEEK_END};
    int operation = chance(4), index = chance(count);
    struct flock part = {
        once_in(60) ? 7 : kinds[chance(3)], once_in(60) ? 7 : origins[once_in(3) ? chance(3) : 0], chance(20) - once_in(10) * 10,
        chance(8) - once_in(6) * 8, once_in(60) ? 5 : 0};
    tell("fcntl(%d, %d, %d, %d, %ld, %ld, %d)", index, operation, part.l_type, part.l_whence, (long)part.l_start, (long)part.l_len, part.l_pid);
    if (tell_result(fcntl(files[index], operations[operation], &part)) < 0 || operation % 2 == 1) return;
    tell(" %d %d %ld %ld %d", part.l_type, part.l_whence, (long)part.l_start, (long)part.l_len, part.l_pid > 0 ? 1 : part.l_pid);
}

static void call(void) {
    int number = chance(100), index = chance(count);
    if (number < 90) {
        lock();
    } else if (number < 95) {
        long offset = chance(30);
        tell("lseek(%d, %ld)", index, offset);
        tell_result(lseek(files[index], offset, SEEK_SET));
    } else {
        tell("open %d", index);
        close(files[index]);
        open_file(index);
    }
}

const struct kind lock_kind = {"locks", begin, call};
