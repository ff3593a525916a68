#ifndef RLK_SOCKETS_H
#define RLK_SOCKETS_H

#include <sys/socket.h>

/// Accepts a connection, non-blocking and closed on exec; -1 and errno on failure.
int rlk_accept(int listener, struct sockaddr *address, socklen_t *length);

/// Whether an error of `getaddrinfo` says that there is no such name, or no address of it.
int rlk_is_unknown_host(int status);

#endif
