#define _GNU_SOURCE

#include "sockets.h"

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

// MARK: Calls that would end the process with SIGPIPE if nobody reads any more

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

/// The signal is taken back if it came from the call, which returned `result`. Leaves errno alone.
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

static int fill(struct mmsghdr *messages, struct iovec *pieces, const struct rlk_datagram *datagrams, int count) {
    if (count > RLK_MOST_DATAGRAMS) count = RLK_MOST_DATAGRAMS;
    memset(messages, 0, sizeof *messages * count);
    for (int index = 0; index < count; index++) {
        const struct rlk_datagram *datagram = &datagrams[index];
        pieces[index] = (struct iovec){datagram->bytes, datagram->count};
        messages[index].msg_hdr = (struct msghdr){
            .msg_name = datagram->address_length > 0 ? datagram->address : NULL,
            .msg_namelen = datagram->address_length,
            .msg_iov = &pieces[index],
            .msg_iovlen = 1,
        };
    }
    return count;
}

int rlk_receive_datagrams(int descriptor, struct rlk_datagram *datagrams, int count) {
    struct mmsghdr messages[RLK_MOST_DATAGRAMS];
    struct iovec pieces[RLK_MOST_DATAGRAMS];
    count = fill(messages, pieces, datagrams, count);
    int received = recvmmsg(descriptor, messages, count, MSG_DONTWAIT | MSG_TRUNC, NULL);
    for (int index = 0; index < received; index++) {
        datagrams[index].length = messages[index].msg_len;
        datagrams[index].address_length = messages[index].msg_hdr.msg_namelen;
    }
    return received;
}

int rlk_send_datagrams(int descriptor, const struct rlk_datagram *datagrams, int count) {
    struct mmsghdr messages[RLK_MOST_DATAGRAMS];
    struct iovec pieces[RLK_MOST_DATAGRAMS];
    count = fill(messages, pieces, datagrams, count);
    return sendmmsg(descriptor, messages, count, MSG_DONTWAIT | MSG_NOSIGNAL);
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
