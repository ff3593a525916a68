#include "calls.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

// Bytes over Unix sockets and pipes, with limits of time, flags, and ends.

enum { left, right, client, server, reader, writer, count };
static const char *const names[] = {"left", "right", "client", "server", "reader", "writer"};
static int descriptors[count], listener;
static char data[1 << 16];

static void put(int place, int descriptor) {
    if (descriptors[place] >= 0) close(descriptors[place]);
    descriptors[place] = descriptor;
}

/// Has calls that block end after a step.
static void limit(int place) {
    struct timeval time = {step / 1000000000, step / 1000 % 1000000};
    setsockopt(descriptors[place], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    setsockopt(descriptors[place], SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

/// Opens what has a place, and what belongs to it. Returns the result of `connect`, or 0.
static long open_at(int place) {
    struct sockaddr_un address = {AF_UNIX, "place"};
    int ends[2];
    long result = 0;
    if (place == reader || place == writer) {
        if (pipe2(ends, O_NONBLOCK) == 0) put(reader, ends[0]), put(writer, ends[1]);
    } else if (place == left || place == right) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) put(left, ends[0]), put(right, ends[1]);
        limit(left), limit(right);
    } else {
        put(client, socket(AF_UNIX, SOCK_STREAM, 0));
        limit(client);
        result = connect(descriptors[client], (struct sockaddr *)&address, sizeof address);
        put(server, accept(listener, NULL, NULL));
        limit(server);
    }
    rest(100000);
    return result;
}

static void begin(void) {
    struct sockaddr_un address = {AF_UNIX, "place"};
    for (int place = 0; place < count; place++) descriptors[place] = -1;
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr *)&address, sizeof address);
    listen(listener, 3);
    for (int place = 0; place < count; place++) open_at(place);
}

static int some_flags(int of_input) {
    int flags = once_in(2) ? MSG_DONTWAIT : 0;
    if (of_input && once_in(4)) flags |= MSG_PEEK;
    if (of_input && once_in(6)) flags |= MSG_WAITALL;
    if (of_input && once_in(8)) flags |= MSG_TRUNC;
    return flags;
}

static void send_some(int place) {
    size_t size = once_in(10) ? 0 : (size_t)(once_in(3) ? chance(3000) : chance(100));
    int flags = once_in(3) ? -1 : some_flags(0), parts = once_in(4);
    for (size_t index = 0; index < size; index++) data[index] = (char)(size + index * 7);
    // A socket that never blocks may take a part, so that a test of that is apart.
    struct iovec pieces[2] = {{data, size / 3}, {data + size / 3, size - size / 3}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    tell("send(%s, %zu, %x, %d)", names[place], size, flags, parts);
    long result = 0;
    size_t done = 0;
    do {
        result = flags == -1 ? write(descriptors[place], data + done, size - done)
            : parts && done == 0 ? sendmsg(descriptors[place], &message, flags | MSG_NOSIGNAL)
            : send(descriptors[place], data + done, size - done, flags | MSG_NOSIGNAL);
        if (result > 0) done += (size_t)result;
    } while (result > 0 && done < size);
    tell_result(result < 0 ? result : (long)done);
    rest(100000);
}

static void receive_some(int place) {
    size_t size = once_in(10) ? 0 : (size_t)(once_in(3) ? 10000 : chance(100));
    int flags = once_in(4) ? -1 : some_flags(1), parts = once_in(4);
    // One end of a stream is far away: a moment later.
    tell("receive(%s, %zu, %x, %d)", names[place], size, flags, parts);
    memset(data, 0, 10000);
    struct iovec pieces[2] = {{data, size / 3}, {data + size / 3, size - size / 3}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2, .msg_flags = 7};
    long result = flags == -1 ? read(descriptors[place], data, size)
        : parts ? recvmsg(descriptors[place], &message, flags) : recv(descriptors[place], data, size, flags);
    tell_bytes(data, tell_result(result));
    if (flags != -1 && parts && result >= 0) tell(" %x", message.msg_flags);
    rest(100000);
}

static void ask(int place) {
    int number = -1;
    socklen_t size = sizeof number;
    struct timeval time = {7, 7};
    switch (chance(6)) {
        case 0:
            tell("FIONREAD(%s)", names[place]);
            tell_result(ioctl(descriptors[place], FIONREAD, &number));
            tell(" %d", number);
            break;
        case 1:
            tell("SO_ERROR(%s)", names[place]);
            tell_result(getsockopt(descriptors[place], SOL_SOCKET, SO_ERROR, &number, &size));
            tell(" %d %u", number, size);
            break;
        case 2:
            tell("SO_RCVTIMEO(%s)", names[place]);
            size = sizeof time;
            tell_result(getsockopt(descriptors[place], SOL_SOCKET, SO_RCVTIMEO, &time, &size));
            tell(" %d %u", time.tv_sec + time.tv_usec > 0, size);
            break;
        case 3:
            tell("SO_TYPE(%s)", names[place]);
            tell_result(getsockopt(descriptors[place], SOL_SOCKET, SO_TYPE, &number, &size));
            tell(" %d %u", number, size);
            break;
        case 4:
            number = O_NONBLOCK & -chance(2);
            tell("F_SETFL(%s, %x)", names[place], number);
            // A pipe has no limit of time.
            if (place != reader && place != writer) tell_result(fcntl(descriptors[place], F_SETFL, number));
            break;
        default:
            tell("F_GETFL(%s)", names[place]);
            tell_result(fcntl(descriptors[place], F_GETFL));
            break;
    }
}

static void look(void) {
    int waits = once_in(4);
    if (once_in(2)) {
        struct pollfd requests[count];
        int first = chance(count);
        tell("poll(%d, %d)", first, waits);
        for (int place = first; place < count; place++)
            requests[place] = (struct pollfd){descriptors[place], (short)(chance(2) | chance(2) << 2 | chance(2) << 13), 0};
        tell_result(poll(requests + first, (nfds_t)(count - first), waits ? (int)(step / 1000000) : 0));
        for (int place = first; place < count; place++) tell(" %x", requests[place].revents);
        return;
    }
    fd_set sets[3];
    struct timeval time = {0, waits ? step / 1000 : 0};
    tell("select(%d)", waits);
    for (int set = 0; set < 3; set++) FD_ZERO(&sets[set]);
    for (int place = 0; place < count; place++)
        for (int set = 0; set < 3; set++)
            if (once_in(2) && descriptors[place] >= 0) FD_SET(descriptors[place], &sets[set]);
    if (tell_result(select(64, &sets[0], &sets[1], once_in(2) ? &sets[2] : NULL, &time)) < 0) return;
    for (int place = 0; place < count; place++)
        for (int set = 0; set < 2; set++)
            tell(" %d", descriptors[place] >= 0 && FD_ISSET(descriptors[place], &sets[set]));
}

static void call(void) {
    int number = chance(100), place = chance(count);
    if (number < 35) {
        send_some(place);
    } else if (number < 70) {
        receive_some(place);
    } else if (number < 80) {
        ask(place);
    } else if (number < 90) {
        look();
    } else if (number < 93) {
        int way = chance(4);
        tell("shutdown(%s, %d)", names[place], way);
        tell_result(shutdown(descriptors[place], way));
        rest(100000);
    } else if (number < 95) {
        tell("close %s", names[place]);
        put(place, -1);
        rest(100000);
    } else {
        tell("open %s", names[place]);
        tell_result(open_at(place));
    }
}

const struct kind stream_kind = {"streams", begin, call};
