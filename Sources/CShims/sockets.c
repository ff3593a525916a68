#define _GNU_SOURCE

#include "sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// MARK: Calls that would end the process with SIGPIPE if the reader has gone

struct quiet {
    sigset_t broken, saved;
    int was_blocked, was_pending;
};

/// The signal of a broken pipe goes to the thread that writes: it is blocked for the call.
static struct quiet begin_quiet(void) {
    struct quiet quiet;
    sigemptyset(&quiet.broken);
    sigaddset(&quiet.broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &quiet.broken, &quiet.saved);
    // A signal that is not blocked does not stay pending.
    quiet.was_blocked = sigismember(&quiet.saved, SIGPIPE);
    quiet.was_pending = 0;
    if (quiet.was_blocked) {
        sigset_t pending;
        sigpending(&pending);
        quiet.was_pending = sigismember(&pending, SIGPIPE);
    }
    return quiet;
}

/// Takes the signal back if it came from the call, which returned `result`. Leaves errno alone.
static void end_quiet(struct quiet *quiet, long result) {
    int error = errno;
    if (result < 0 && error == EPIPE && !quiet->was_pending) {
        struct timespec at_once = {0, 0};
        while (sigtimedwait(&quiet->broken, NULL, &at_once) < 0 && errno == EINTR) {}
    }
    if (!quiet->was_blocked) pthread_sigmask(SIG_SETMASK, &quiet->saved, NULL);
    errno = error;
}

ssize_t rlk_write_quietly(int descriptor, const void *bytes, size_t count) {
    struct quiet quiet = begin_quiet();
    ssize_t written;
    do {
        written = write(descriptor, bytes, count);
    } while (written < 0 && errno == EINTR);
    end_quiet(&quiet, written);
    return written;
}

ssize_t rlk_splice_quietly(int from, int to, size_t count) {
    struct quiet quiet = begin_quiet();
    ssize_t moved = rlk_splice(from, to, count);
    end_quiet(&quiet, moved);
    return moved;
}

// MARK: Sockets

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

int rlk_is_unknown_host(int status) {
    return status == EAI_NONAME || status == EAI_NODATA || status == EAI_ADDRFAMILY;
}

// MARK: Datagrams

/// Room for the facts about a datagram, in either direction: an address, a type of service for either family, and the
/// size of the segments.
union control {
    struct cmsghdr alignment;
    char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + 3 * CMSG_SPACE(sizeof(int))];
};

static struct msghdr begin_message(const struct rlk_datagram *datagram, struct iovec *pieces, int count) {
    for (int index = 0; index < count; index++) {
        pieces[index] = (struct iovec){datagram[index].bytes, datagram[index].count};
    }
    return (struct msghdr){
        .msg_name = datagram->address_length > 0 ? datagram->address : NULL,
        .msg_namelen = datagram->address_length,
        .msg_iov = pieces,
        .msg_iovlen = count,
    };
}

/// Returns 1 if a datagram to this address goes to a group, or to all hosts, and cannot be answered from there.
static int is_for_many(struct in_addr address) {
    return IN_MULTICAST(ntohl(address.s_addr)) || address.s_addr == htonl(INADDR_BROADCAST);
}

static void note_local_4(struct rlk_datagram *datagram, const struct in_pktinfo *info) {
    // The address from which the kernel would answer. It is not known of what came before the socket had asked for it.
    struct in_addr address = info->ipi_spec_dst.s_addr != 0 ? info->ipi_spec_dst : info->ipi_addr;
    datagram->interface = info->ipi_ifindex;
    if (is_for_many(address)) return;
    *(struct sockaddr_in *)datagram->local_address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = address};
    datagram->local_length = sizeof(struct sockaddr_in);
}

static void note_local_6(struct rlk_datagram *datagram, const struct in6_pktinfo *info) {
    const struct in6_addr *address = &info->ipi6_addr;
    datagram->interface = info->ipi6_ifindex;
    if (IN6_IS_ADDR_MULTICAST(address)) return;
    if (IN6_IS_ADDR_V4MAPPED(address) && is_for_many((struct in_addr){address->s6_addr32[3]})) return;
    *(struct sockaddr_in6 *)datagram->local_address = (struct sockaddr_in6){
        .sin6_family = AF_INET6,
        .sin6_addr = *address,
        .sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(address) ? info->ipi6_ifindex : 0,
    };
    datagram->local_length = sizeof(struct sockaddr_in6);
}

static void note_facts(struct rlk_datagram *datagram, struct msghdr *message) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
        const void *data = CMSG_DATA(part);
        if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_PKTINFO) {
            note_local_4(datagram, data);
        } else if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_PKTINFO) {
            note_local_6(datagram, data);
        } else if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_TOS) {
            datagram->type_of_service = *(const uint8_t *)data;
        } else if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_TCLASS) {
            datagram->type_of_service = *(const int *)data;
        } else if (part->cmsg_level == IPPROTO_UDP && part->cmsg_type == RLK_UDP_GRO) {
            datagram->segment_size = *(const int *)data;
        }
    }
}

int rlk_receive_datagrams(int descriptor, struct rlk_datagram *datagrams, int count, int with_facts) {
    struct mmsghdr messages[RLK_MOST_DATAGRAMS];
    struct iovec pieces[RLK_MOST_DATAGRAMS];
    union control controls[RLK_MOST_DATAGRAMS];
    if (count > RLK_MOST_DATAGRAMS) count = RLK_MOST_DATAGRAMS;
    for (int index = 0; index < count; index++) {
        messages[index] = (struct mmsghdr){.msg_hdr = begin_message(&datagrams[index], &pieces[index], 1)};
        if (!with_facts) continue;
        messages[index].msg_hdr.msg_control = &controls[index];
        messages[index].msg_hdr.msg_controllen = sizeof controls[index];
    }
    int received = recvmmsg(descriptor, messages, count, MSG_DONTWAIT | MSG_TRUNC, NULL);
    for (int index = 0; index < received; index++) {
        datagrams[index].length = messages[index].msg_len;
        datagrams[index].address_length = messages[index].msg_hdr.msg_namelen;
        if (with_facts) note_facts(&datagrams[index], &messages[index].msg_hdr);
    }
    return received;
}

static void add_fact(struct msghdr *message, int level, int type, const void *data, size_t count) {
    struct cmsghdr *part = (struct cmsghdr *)((char *)message->msg_control + message->msg_controllen);
    part->cmsg_level = level;
    part->cmsg_type = type;
    part->cmsg_len = CMSG_LEN(count);
    memcpy(CMSG_DATA(part), data, count);
    message->msg_controllen += CMSG_SPACE(count);
}

static void add_source(struct msghdr *message, const struct rlk_datagram *datagram) {
    const struct sockaddr *address = datagram->local_address;
    if (datagram->local_length == 0) return;
    if (address->sa_family == AF_INET) {
        struct in_pktinfo info = {.ipi_spec_dst = ((const struct sockaddr_in *)address)->sin_addr};
        add_fact(message, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *source = (const struct sockaddr_in6 *)address;
        struct in6_pktinfo info = {.ipi6_addr = source->sin6_addr, .ipi6_ifindex = source->sin6_scope_id};
        add_fact(message, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
    }
}

/// The segments of a piece that goes to the kernel at once: as many as it takes, none longer than an Ethernet packet,
/// because the kernel does not split segments.
enum { MOST_BYTES_OF_SEGMENTS = 65507, LONGEST_SEGMENT = 1452 };

static int have_same_way(const struct rlk_datagram *one, const struct rlk_datagram *other) {
    return one->address_length == other->address_length && one->local_length == other->local_length &&
           one->type_of_service == other->type_of_service &&
           memcmp(one->address, other->address, one->address_length) == 0 &&
           memcmp(one->local_address, other->local_address, one->local_length) == 0;
}

/// Returns the number of datagrams that can be segments of one piece: all but the last are as long as the first.
static int count_of_segments(const struct rlk_datagram *datagrams, int count) {
    size_t size = datagrams[0].count, bytes = size;
    if (size == 0 || size > LONGEST_SEGMENT) return 1;
    int segments = 1;
    while (segments < count && datagrams[segments - 1].count == size) {
        const struct rlk_datagram *next = &datagrams[segments];
        if (next->count == 0 || next->count > size || bytes + next->count > MOST_BYTES_OF_SEGMENTS) break;
        if (!have_same_way(datagrams, next)) break;
        bytes += next->count;
        segments++;
    }
    return segments;
}

int rlk_send_datagrams(int descriptor, const struct rlk_datagram *datagrams, int count, int in_segments) {
    struct mmsghdr messages[RLK_MOST_DATAGRAMS];
    struct iovec pieces[RLK_MOST_DATAGRAMS];
    union control controls[RLK_MOST_DATAGRAMS];
    if (count > RLK_MOST_DATAGRAMS) count = RLK_MOST_DATAGRAMS;
    int number = 0;
    for (int index = 0; index < count; number++) {
        const struct rlk_datagram *first = &datagrams[index];
        int segments = in_segments ? count_of_segments(first, count - index) : 1;
        struct msghdr message = begin_message(first, &pieces[index], segments);
        message.msg_control = &controls[number];
        add_source(&message, first);
        if (first->type_of_service >= 0) {
            // The kernel reads the one of the datagram's family.
            add_fact(&message, IPPROTO_IP, IP_TOS, &first->type_of_service, sizeof first->type_of_service);
            add_fact(&message, IPPROTO_IPV6, IPV6_TCLASS, &first->type_of_service, sizeof first->type_of_service);
        }
        uint16_t size = first->count;
        if (segments > 1) add_fact(&message, IPPROTO_UDP, RLK_UDP_SEGMENT, &size, sizeof size);
        if (message.msg_controllen == 0) message.msg_control = NULL;
        messages[number] = (struct mmsghdr){.msg_hdr = message};
        index += segments;
    }
    int taken = sendmmsg(descriptor, messages, number, MSG_DONTWAIT | MSG_NOSIGNAL);
    int sent = taken < 0 ? -1 : 0;
    for (int index = 0; index < taken; index++) sent += messages[index].msg_hdr.msg_iovlen;
    return sent;
}

int rlk_take_queued_error(int descriptor, int *error, int *is_local, struct sockaddr *address, socklen_t *length) {
    _Alignas(struct cmsghdr) char control[512];
    struct msghdr message = {
        .msg_name = address, .msg_namelen = *length, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(descriptor, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return 0;
    *length = message.msg_namelen;
    *error = EIO;
    *is_local = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part != NULL; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_len < CMSG_LEN(sizeof(struct sock_extended_err))) continue;
        if (!(part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_RECVERR) &&
            !(part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_RECVERR))
            continue;
        struct sock_extended_err details;
        memcpy(&details, CMSG_DATA(part), sizeof details);
        *error = details.ee_errno;
        *is_local = details.ee_origin == SO_EE_ORIGIN_LOCAL;
    }
    return 1;
}

int rlk_look_at_stream(int descriptor, struct rlk_stream_facts *facts) {
    memset(facts, 0, sizeof *facts);
    int type = 0;
    socklen_t length = sizeof type;
    if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) return -1;
    struct sockaddr_storage peer;
    length = sizeof peer;
    if (getpeername(descriptor, (struct sockaddr *)&peer, &length) != 0) return -1;
    struct tcp_info info = {0};
    length = sizeof info;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) == 0) {
        facts->is_tcp = 1;
        facts->received = info.tcpi_bytes_received;
        facts->sent = info.tcpi_bytes_acked;
    }
    int count = 0;
    if (ioctl(descriptor, SIOCINQ, &count) == 0) facts->unread = count;
    if (ioctl(descriptor, SIOCOUTQ, &count) == 0) facts->unsent = count;
    return 0;
}
