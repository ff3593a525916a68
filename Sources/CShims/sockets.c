#define _GNU_SOURCE

#include "sockets.h"
#include "quiet.h"

#include <fcntl.h>
#include <unistd.h>

#include <netdb.h>

int rlk_accept(int listener, struct sockaddr *address, socklen_t *length) {
    return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int rlk_splice_pipe(int ends[2], int capacity) {
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
    fcntl(ends[1], F_SETPIPE_SZ, capacity);
    return 0;
}

ssize_t rlk_splice(int from, int to, size_t count) {
    return splice(from, NULL, to, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

ssize_t rlk_splice_quietly(int from, int to, size_t count) {
    struct rlk_quiet quiet = rlk_begin_quiet();
    ssize_t moved = rlk_splice(from, to, count);
    rlk_end_quiet(&quiet, moved);
    return moved;
}

int rlk_is_unknown_host(int status) {
    return status == EAI_NONAME || status == EAI_NODATA || status == EAI_ADDRFAMILY;
}
