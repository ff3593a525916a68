#ifndef RLK_SOCKETS_H
#define RLK_SOCKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/// Accepts a connection, non-blocking and closed on exec; -1 and errno on failure.
int rlk_accept(int listener, struct sockaddr *address, socklen_t *length);

/// As `write`, but a pipe without a reader is an error and no signal.
ssize_t rlk_write_quietly(int descriptor, const void *bytes, size_t count);

/// A non-blocking pipe, closed on exec, that holds `capacity` bytes if the system grants so much; 0, or -1 and errno.
int rlk_splice_pipe(int ends[2], int capacity);

/// Moves bytes within the kernel from a socket to a pipe, without blocking. As `splice`, it returns how many, 0 at the
/// end, or -1 and errno.
ssize_t rlk_splice(int from, int to, size_t count);

/// The same from a pipe to a socket; a socket that nobody reads is an error and no signal.
ssize_t rlk_splice_quietly(int from, int to, size_t count);

/// A datagram that is received or sent.
struct rlk_datagram {
    void *bytes;
    /// The room to receive it, or the number of bytes to send.
    size_t count;
    /// The sender or the receiver; nothing for the receiver that the socket is connected to.
    void *address;
    socklen_t address_length;
    /// How long a received datagram was, which may be more than there is room for.
    size_t length;
    /// The address of this machine that it was sent to, or that it leaves from, without a port: a `sockaddr_in` or
    /// `sockaddr_in6`, for which there is room. Its length is 0 if the address is not known, or left to the system.
    void *local_address;
    socklen_t local_length;
    /// The interface at which it has arrived; 0 if that is not known.
    unsigned interface;
    /// The type of service of IPv4, or the traffic class of IPv6; negative if it is left to the socket.
    int type_of_service;
    /// The size of each of several received datagrams of one sender that are in one piece; the last one may be shorter.
    /// 0 for a single datagram.
    size_t segment_size;
};

/// Options of the level IPPROTO_UDP, which older headers do not have.
enum { RLK_UDP_SEGMENT = 103, RLK_UDP_GRO = 104 };

/// The most datagrams of a call.
enum { RLK_MOST_DATAGRAMS = 16 };

/// As `recvmmsg`, without blocking: how many, or -1 and errno. `with_facts` asks for local addresses, types of service
/// and sizes of segments. Do not ask a Unix socket, whose peer could open descriptors in this process then.
int rlk_receive_datagrams(int descriptor, struct rlk_datagram *datagrams, int count, int with_facts);

/// As `sendmmsg`, without blocking and without a signal: how many, or -1 and errno. `in_segments` hands equally long
/// ones to one peer to the kernel in one piece, which a socket of UDP takes that has the option RLK_UDP_SEGMENT.
int rlk_send_datagrams(int descriptor, const struct rlk_datagram *datagrams, int count, int in_segments);

/// Takes the oldest error from the queue of a socket, with the receiver of the datagram that has failed. Returns
/// whether there was one; `is_local` says that the call has reported it already.
int rlk_take_queued_error(int descriptor, int *error, int *is_local, struct sockaddr *address, socklen_t *length);

/// Whether an error of `getaddrinfo` says that there is no such name, or no address of it.
int rlk_is_unknown_host(int status);

/// What the kernel knows of a connection. `received` and `sent`, which are acknowledged, only of TCP.
struct rlk_stream_facts {
    int is_tcp;
    uint64_t received, sent;
    /// The bytes that wait to be read here, and to be taken by the peer.
    uint64_t unread, unsent;
};

/// 0, or -1 if the descriptor is no connected stream socket.
int rlk_look_at_stream(int descriptor, struct rlk_stream_facts *facts);

#endif
