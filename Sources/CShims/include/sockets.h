#ifndef RLK_SOCKETS_H
#define RLK_SOCKETS_H

#include <sys/socket.h>

/// Accepts a connection, non-blocking and closed on exec; -1 and errno on failure.
int rlk_accept(int listener, struct sockaddr *address, socklen_t *length);

/// A non-blocking pipe, closed on exec, that holds `capacity` bytes if the system grants so much; 0, or -1 and errno.
int rlk_splice_pipe(int ends[2], int capacity);

/// Moves bytes within the kernel from a socket to a pipe, without blocking. As `splice`, it returns how many, 0 at the end,
/// or -1 and errno.
ssize_t rlk_splice(int from, int to, size_t count);

/// The same from a pipe to a socket; a socket that nobody reads is an error and no signal.
ssize_t rlk_splice_quietly(int from, int to, size_t count);

/// Whether an error of `getaddrinfo` says that there is no such name, or no address of it.
int rlk_is_unknown_host(int status);

#endif
