#include "calls.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

// Sets of `epoll` with counters, pipes, sockets, a file, and one another.

enum { counter, semaphore, pipe_reader, pipe_writer, left, right, first_set, last_set = first_set + 2, copy, file, count };
static const char *const names[] = {
    "counter", "semaphore", "reader", "writer", "left", "right", "set1", "set2", "set3", "copy", "file"};
static int descriptors[count];

static void put(int place, int descriptor) {
    if (descriptors[place] >= 0) close(descriptors[place]);
    descriptors[place] = descriptor;
    // The other end of a socket hears of it a moment later.
    if (place == left) rest(100000);
}

/// Opens what has a place, and what belongs to it.
static void open_at(int place) {
    int ends[2];
    switch (place) {
        case counter: put(place, eventfd(0, EFD_NONBLOCK)); break;
        case semaphore: put(place, eventfd(2, EFD_NONBLOCK | EFD_SEMAPHORE)); break;
        case pipe_reader: case pipe_writer:
            if (pipe2(ends, O_NONBLOCK) == 0) put(pipe_reader, ends[0]), put(pipe_writer, ends[1]);
            break;
        case left: case right:
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0) put(left, ends[0]), put(right, ends[1]);
            break;
        case copy: put(place, dup(descriptors[chance(copy)])); break;
        case file: put(place, open("file", O_RDWR | O_CREAT, 0600)); break;
        default: put(place, epoll_create1(0)); break;
    }
}

static void begin(void) {
    for (int place = 0; place < count; place++) descriptors[place] = -1;
    for (int place = 0; place < count; place++) open_at(place);
}

static int some_set(void) { return first_set + chance(3); }

static void change(void) {
    static const uint32_t flags[] = {EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLPRI, EPOLLET, EPOLLONESHOT, EPOLLEXCLUSIVE};
    static const int often[] = {80, 50, 20, 5, 40, 15, 6};
    int set = some_set(), place = chance(count), operation = 1 + chance(once_in(50) ? 5 : 3);
    struct epoll_event event = {0};
    for (int index = 0; index < 7; index++) if (chance(100) < often[index]) event.events |= flags[index];
    event.data.u64 = (unsigned)chance(1000);
    tell("epoll_ctl(%s, %d, %s, %x)", names[set], operation, names[place], event.events);
    tell_result(epoll_ctl(descriptors[set], operation, descriptors[place], &event));
}

static void await(void) {
    struct epoll_event events[16];
    int set = once_in(60) ? chance(count) : some_set(), most = chance(4) + (once_in(2) ? 12 : 0), waits = once_in(12);
    tell("epoll_wait(%s, %d, %d)", names[set], most, waits);
    long result = tell_result(epoll_wait(descriptors[set], events, most, waits ? (int)(step / 1000000) : 0));
    for (long index = 0; index < result; index++) tell(" %d:%x", (int)events[index].data.u64, events[index].events);
}

static void count_events(void) {
    int place = once_in(2) ? counter : semaphore;
    uint64_t number = once_in(8) ? ~0ull - (unsigned)chance(3) : (unsigned)chance(3);
    if (once_in(2)) {
        tell("write(%s, %lx)", names[place], number);
        tell_result(write(descriptors[place], &number, once_in(30) ? 4 : 8));
    } else {
        tell("read(%s)", names[place]);
        if (tell_result(read(descriptors[place], &number, once_in(30) ? 4 : 8)) > 0) tell_bytes(&number, 8);
    }
}

static char data[1 << 16];

static void move_bytes(int from, int to, int most) {
    if (once_in(2)) {
        size_t size = (size_t)(once_in(4) ? chance(most) : once_in(2) ? 4096 : chance(10));
        for (size_t index = 0; index < size; index++) data[index] = (char)(size + index);
        tell("write(%s, %zu)", names[to], size);
        tell_result(write(descriptors[to], data, size));
    } else {
        size_t size = to == pipe_writer && once_in(2) ? (size_t)chance(5000) : sizeof data;
        tell("read(%s, %zu)", names[from], size);
        tell_bytes(data, tell_result(read(descriptors[from], data, size)));
    }
}

/// Moves bytes of a socket, which has them a moment later, and may take a part at a time.
static void move_on_socket(void) {
    int from = once_in(2) ? left : right, to = from == left ? right : left;
    size_t size = 1 + (size_t)chance(200), done = 0;
    if (once_in(2)) {
        for (size_t index = 0; index < size; index++) data[index] = (char)(size + index);
        tell("write(%s, %zu)", names[to], size);
        long result;
        while ((result = write(descriptors[to], data + done, size - done)) > 0 && (done += (size_t)result) < size);
        tell_result(result < 0 ? result : (long)done);
    } else {
        tell("read(%s)", names[from]);
        tell_bytes(data, tell_result(read(descriptors[from], data, sizeof data)));
    }
    rest(100000);
}

static void look(void) {
    struct pollfd requests[count];
    tell("poll()");
    for (int place = 0; place < count; place++) requests[place] = (struct pollfd){descriptors[place], POLLIN | POLLOUT | POLLRDHUP, 0};
    tell_result(poll(requests, count, 0));
    for (int place = 0; place < count; place++) tell(" %x", requests[place].revents);
}

static void open_or_close(void) {
    int place = chance(count);
    if (place == left || place == right) rest(100000);
    if (once_in(2)) {
        tell("open %s", names[place]);
        open_at(place);
    } else if (place == copy || once_in(3)) {
        tell("close %s", names[place]);
        put(place, -1);
    } else if (place == left || place == right) {
        int way = chance(2) + 1;
        tell("shutdown(%s, %d)", names[place], way);
        tell_result(shutdown(descriptors[place], way));
    }
    rest(100000);
}

static void call(void) {
    int number = chance(100);
    if (number < 28) change();
    else if (number < 60) await();
    else if (number < 70) count_events();
    else if (number < 82) move_bytes(pipe_reader, pipe_writer, 40000);
    else if (number < 91) move_on_socket();
    else if (number < 93) look();
    else open_or_close();
}

const struct kind set_kind = {"sets", begin, call};
