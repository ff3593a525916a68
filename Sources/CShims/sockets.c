#define _GNU_SOURCE

#include "sockets.h"

#include <netdb.h>

int rlk_accept(int listener, struct sockaddr *address, socklen_t *length) {
    return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int rlk_is_unknown_host(int status) {
    return status == EAI_NONAME || status == EAI_NODATA || status == EAI_ADDRFAMILY;
}
