#ifndef RLK_SOCKETS_H
#define RLK_SOCKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/// Accepts a connection, non-blocking and closed on exec; -1 and errno on failure.
int rlk_accept(int listener, struct sockaddr *address, socklen_t *length);

/// Writes as `write` does, but a pipe without a reader is an error and no signal.
ssize_t rlk_write_quietly(int descriptor, const void *bytes, size_t count);

/// Makes a non-blocking pipe, closed on exec, that holds `capacity` bytes if the system grants it; 0, or -1 and errno.
int rlk_splice_pipe(int ends[2], int capacity);

/// Moves bytes within the kernel from a socket to a pipe, without blocking. Returns their number as `splice` does, 0 at
/// the end, or -1 and errno.
ssize_t rlk_splice(int from, int to, size_t count);

/// Moves bytes within the kernel from a pipe to a socket, as `rlk_splice` does. A socket without a reader is an error
/// and no signal.
ssize_t rlk_splice_quietly(int from, int to, size_t count);

/// A datagram that is received or sent.
struct rlk_datagram {
    void *bytes;
    /// The size of the receive buffer, or the number of bytes to send.
    size_t count;
    /// The sender or the receiver; nothing for the receiver that the socket is connected to.
    void *address;
    socklen_t address_length;
    /// The length of a received datagram, which may exceed the room for it.
    size_t length;
    /// The address of this machine that the datagram was sent to or leaves from, without a port: a `sockaddr_in` or
    /// `sockaddr_in6`, for which there is room. Its length is 0 if the address is not known, or left to the system.
    void *local_address;
    socklen_t local_length;
    /// The interface at which the datagram has arrived; 0 if unknown.
    unsigned interface;
    /// The type of service of IPv4, or the traffic class of IPv6; negative to leave it to the socket.
    int type_of_service;
    /// The size of each of several received datagrams of one sender in one piece, of which the last may be shorter; 0
    /// for a single datagram.
    size_t segment_size;
};

/// Options of the level IPPROTO_UDP, which older headers do not have.
enum { RLK_UDP_SEGMENT = 103, RLK_UDP_GRO = 104 };

/// The largest number of datagrams in a call.
enum { RLK_MOST_DATAGRAMS = 16 };

/// Receives datagrams as `recvmmsg` does, without blocking. Returns their number, or -1 and errno. `with_facts`
/// requests local addresses, types of service and sizes of segments; not for a Unix socket, whose peer could then open
/// descriptors in this process.
int rlk_receive_datagrams(int descriptor, struct rlk_datagram *datagrams, int count, int with_facts);

/// Sends datagrams as `sendmmsg` does, without blocking and without a signal. Returns their number, or -1 and errno.
/// `in_segments` hands equally long datagrams to one peer to the kernel in one piece, which requires a UDP socket with
/// the option RLK_UDP_SEGMENT.
int rlk_send_datagrams(int descriptor, const struct rlk_datagram *datagrams, int count, int in_segments);

/// Takes the oldest error from the queue of a socket, with the receiver of the datagram that has failed. Returns 1 if
/// there was one; `is_local` means that the call has reported it already.
int rlk_take_queued_error(int descriptor, int *error, int *is_local, struct sockaddr *address, socklen_t *length);

/// Returns 1 if an error of `getaddrinfo` means that there is no such name, or no address for it.
int rlk_is_unknown_host(int status);

/// The kernel's facts about a connection. The acknowledged `received` and `sent` are set only for TCP.
struct rlk_stream_facts {
    int is_tcp;
    uint64_t received, sent;
    /// The bytes that wait to be read here, and to be taken by the peer.
    uint64_t unread, unsent;
};

/// Stores the facts about a connected stream socket. Returns 0, or -1 if the descriptor is not one.
int rlk_look_at_stream(int descriptor, struct rlk_stream_facts *facts);

#endif
