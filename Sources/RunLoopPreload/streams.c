#include "preload.h"

#if defined(__x86_64__)

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

// Sockets, pipes, counters, timers, and waits for them. The simulation has them; this code copies bytes to and from the
// memory that both share.

// MARK: Bytes

static size_t gather(const struct iovec *pieces, size_t count) {
    char *data = own_slot()->data;
    size_t length = 0;
    for (size_t index = 0; index < count; index++) {
        size_t room = rlk_most_bytes - length, part = pieces[index].iov_len < room ? pieces[index].iov_len : room;
        memcpy(data + length, pieces[index].iov_base, part);
        length += part;
    }
    return length;
}

static void scatter(const struct iovec *rooms, size_t count, size_t length) {
    const char *data = own_slot()->data;
    for (size_t index = 0; index < count && length > 0; index++) {
        size_t part = rooms[index].iov_len < length ? rooms[index].iov_len : length;
        memcpy(rooms[index].iov_base, data, part);
        data += part, length -= part;
    }
}

static size_t sum_of(const struct iovec *rooms, size_t count) {
    size_t sum = 0;
    for (size_t index = 0; index < count; index++) sum += rooms[index].iov_len;
    return sum < rlk_most_bytes ? sum : rlk_most_bytes;
}

static void set_address(const void *address, size_t size) {
    struct rlk_slot *slot = own_slot();
    slot->address_size = address && size <= sizeof slot->address ? size : 0;
    memcpy(slot->address, address, slot->address_size);
}

/// Copies the address of an answer, as far as there is room.
static void copy_address(void *address, socklen_t *size) {
    const struct rlk_slot *slot = own_slot();
    if (!address || !size) return;
    memcpy(address, slot->address, *size < slot->address_size ? *size : slot->address_size);
    *size = slot->address_size;
}

/// The flags of a call that is not for sockets alone.
enum { of_any = -1 };

static int transfer_flags(int flags) {
    if (flags == of_any) return 0;
    return rlk_transfer_of_socket | (flags & MSG_DONTWAIT ? rlk_transfer_never_waits : 0) |
           (flags & MSG_PEEK ? rlk_transfer_keeps_input : 0) | (flags & MSG_WAITALL ? rlk_transfer_fills : 0);
}

/// A flag of this code's own: the slot has descriptors that go with the bytes.
enum { has_control = 1 << 30 };

static long
write_pieces(int descriptor, const struct iovec *pieces, size_t count, const void *address, size_t size, int flags) {
    struct rlk_slot *slot = own_slot();
    set_address(address, size);
    slot->count = gather(pieces, count);
    if (flags == of_any || !(flags & has_control)) slot->control.count = 0;
    long result = ask(rlk_request_write, descriptor, transfer_flags(flags), 0, 0);
    if (result == -EPIPE && (flags == of_any || !(flags & MSG_NOSIGNAL))) raise_signal(SIGPIPE);
    return result;
}

static long read_into(int descriptor, const struct iovec *rooms, size_t count, int flags) {
    long result = ask(rlk_request_read, descriptor, sum_of(rooms, count), transfer_flags(flags), 0);
    if (result > 0) scatter(rooms, count, result);
    return result;
}

/// Reads bytes, and control data of some size.
static long
read_with_control(int descriptor, const struct iovec *rooms, size_t count, int flags, size_t control_size) {
    struct rlk_slot *slot = own_slot();
    slot->control.count = slot->control.is_cut = 0, slot->control.process = 0;
    int all = transfer_flags(flags) | rlk_transfer_takes_descriptors;
    long result = ask(rlk_request_read, descriptor, sum_of(rooms, count), all, control_size);
    if (result > 0) scatter(rooms, count, result);
    return result;
}

/// Takes the control data of a message. Returns 0, or an error number.
static long take_control(const struct msghdr *message) {
    struct rlk_control *control = &own_slot()->control;
    const char *next = message->msg_control, *end = next + message->msg_controllen;
    control->count = 0;
    while (next && next + sizeof(struct cmsghdr) <= end) {
        const struct cmsghdr *part = (const void *)next;
        if (part->cmsg_len < sizeof *part || next + part->cmsg_len > end) return -EINVAL;
        size_t size = part->cmsg_len - CMSG_LEN(0), count = size / sizeof(int);
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            if (control->count + count > sizeof control->descriptors / sizeof(int)) return -EINVAL;
            memcpy(control->descriptors + control->count, CMSG_DATA(part), count * sizeof(int));
            control->count += count;
        } else if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS) {
            struct ucred sender;
            memcpy(&sender, CMSG_DATA(part), sizeof sender);
            // The simulation knows the sender.
            if (sender.pid != page->process || sender.uid != page->user || sender.gid != page->group) return -EPERM;
        } else {
            escape("sends control data over a socket", -1);
        }
        next += CMSG_ALIGN(part->cmsg_len);
    }
    return 0;
}

static long send_message(int descriptor, const struct msghdr *message, int flags) {
    long result = take_control(message);
    if (result < 0) return result;
    return write_pieces(
        descriptor, message->msg_iov, message->msg_iovlen, message->msg_name, message->msg_namelen,
        flags | has_control);
}

/// Writes a part of a message's control data, if there is room. Returns its size with the space behind it.
static size_t put_control(char *room, size_t size, int type, const void *bytes, size_t count) {
    if (size < CMSG_LEN(count)) return 0;
    struct cmsghdr *part = (void *)room;
    *part = (struct cmsghdr){.cmsg_len = CMSG_LEN(count), .cmsg_level = SOL_SOCKET, .cmsg_type = type};
    memcpy(CMSG_DATA(part), bytes, count);
    return CMSG_SPACE(count) < size ? CMSG_SPACE(count) : size;
}

/// Gives a message the control data that came with its bytes.
static void give_control(struct msghdr *message, int flags) {
    const struct rlk_control *control = &own_slot()->control;
    char *room = message->msg_control;
    size_t size = message->msg_controllen, used = 0;
    message->msg_flags = control->is_cut ? MSG_CTRUNC : 0;
    if (control->process) {
        struct ucred sender = {control->process, control->user, control->group};
        used += put_control(room, size, SCM_CREDENTIALS, &sender, sizeof sender);
        if (used == 0) message->msg_flags |= MSG_CTRUNC;
    }
    if (control->count > 0)
        used += put_control(room + used, size - used, SCM_RIGHTS, control->descriptors, control->count * sizeof(int));
    for (uint32_t index = 0; index < control->count; index++)
        page->closes_on_exec[control->descriptors[index]] = !!(flags & MSG_CMSG_CLOEXEC);
    message->msg_controllen = used;
}

static long receive_message(int descriptor, struct msghdr *message, int flags) {
    long result = read_with_control(
        descriptor, message->msg_iov, message->msg_iovlen, flags, message->msg_controllen);
    if (result < 0) return result;
    copy_address(message->msg_name, &message->msg_namelen);
    give_control(message, flags);
    return result;
}

static long send_messages(int descriptor, struct mmsghdr *messages, unsigned count, int flags) {
    for (unsigned index = 0; index < count; index++) {
        long result = send_message(descriptor, &messages[index].msg_hdr, flags);
        if (result < 0) return index > 0 ? (long)index : result;
        messages[index].msg_len = result;
    }
    return count;
}

static long receive_messages(int descriptor, struct mmsghdr *messages, unsigned count, int flags) {
    for (unsigned index = 0; index < count; index++) {
        long result = receive_message(descriptor, &messages[index].msg_hdr, index > 0 ? flags | MSG_DONTWAIT : flags);
        if (result < 0) return index > 0 ? (long)index : result;
        messages[index].msg_len = result;
    }
    return count;
}

// MARK: Making descriptors

/// Sets the mode of a new descriptor. Whether it is closed on exec is noted for all calls in one place.
static long with_flags(long descriptor, int never_blocks) {
    if (descriptor >= 0 && never_blocks) ask(rlk_request_set_blocking, descriptor, 0, 0, 0);
    return descriptor;
}

static long make_pair(int family_or_pipe, int type, int *ends) {
    long result = ask(rlk_request_pair, 0, family_or_pipe, type & 0xf, 0);
    if (result < 0) return result;
    memcpy(ends, own_slot()->data, 2 * sizeof *ends);
    for (int index = 0; index < 2; index++) with_flags(ends[index], type & SOCK_NONBLOCK);
    return 0;
}

static long accept_connection(int descriptor, void *address, socklen_t *size, int flags) {
    long result = ask(rlk_request_accept, descriptor, 0, 0, 0);
    if (result < 0) return result;
    copy_address(address, size);
    return with_flags(result, flags & SOCK_NONBLOCK);
}

static long name(int descriptor, int of_peer, void *address, socklen_t *size) {
    long result = ask(rlk_request_name, descriptor, of_peer, 0, 0);
    if (result == 0) copy_address(address, size);
    return result;
}

static long with_address(enum rlk_request request, int descriptor, const void *address, size_t size) {
    set_address(address, size);
    return ask(request, descriptor, 0, 0, 0);
}

static int64_t length_of_old(const struct timeval *time) {
    return time ? time->tv_sec * 1000000000ll + time->tv_usec * 1000 : -1;
}

static long set_option(int descriptor, int level, int option, const void *value, size_t size) {
    struct linger linger;
    struct timeval time;
    int number = 0;
    if (level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO)) {
        if (size < sizeof time) return -EINVAL;
        memcpy(&time, value, sizeof time);
        if (time.tv_usec < 0 || time.tv_usec >= 1000000) return -EDOM;
        // A negative one is none.
        return ask(
            rlk_request_set_option, descriptor, level, option, time.tv_sec < 0 ? 0 : length_of_old(&time));
    }
    if (level == SOL_SOCKET && option == SO_LINGER && size >= sizeof linger) {
        memcpy(&linger, value, sizeof linger);
        number = linger.l_onoff ? linger.l_linger : -1;
    } else {
        memcpy(&number, value, size < sizeof number ? size : sizeof number);
    }
    return ask(rlk_request_set_option, descriptor, level, option, number);
}

static long find_option(int descriptor, int level, int option, void *value, socklen_t *size) {
    long result = ask(rlk_request_option, descriptor, level, option, 0);
    if (result < 0) return result;
    socklen_t length = own_slot()->count;
    memcpy(value, own_slot()->data, *size < length ? *size : length);
    if (*size > length) *size = length;
    return 0;
}

// MARK: Facts about a descriptor

static long control(int descriptor, int operation, long argument) {
    switch (operation) {
        case F_GETFD: case F_SETFD: return ask(rlk_request_flags, descriptor, 0, 0, 0) < 0 ? -EBADF : 0;
        case F_GETFL: return ask(rlk_request_flags, descriptor, 0, 0, 0);
        case F_SETFL: return ask(rlk_request_set_blocking, descriptor, !(argument & O_NONBLOCK), 0, 0);
        case F_DUPFD: case F_DUPFD_CLOEXEC: return ask(rlk_request_duplicate, descriptor, argument, 0, 0);
        default: return -EINVAL;
    }
}

static long control_device(int descriptor, unsigned long operation, int *argument) {
    switch (operation) {
        case FIONBIO: return ask(rlk_request_set_blocking, descriptor, !*argument, 0, 0);
        case FIOCLEX: case FIONCLEX: return 0;
        case FIONREAD: {
            long result = ask(rlk_request_input, descriptor, 0, 0, 0);
            if (result >= 0) *argument = result;
            return result < 0 ? result : 0;
        }
        default: return ask(rlk_request_flags, descriptor, 0, 0, 0) < 0 ? -EBADF : -ENOTTY;
    }
}

// MARK: Waits

static int64_t length_of(const struct timespec *time) {
    const int64_t second = 1000000000;
    if (!time) return -1;
    return time->tv_sec >= INT64_MAX / second - 1 ? -1 : time->tv_sec * second + time->tv_nsec;
}

static int64_t length_of_milliseconds(int time) { return time < 0 ? -1 : (int64_t)time * 1000000; }

static long await_set(int descriptor, struct epoll_event *events, int most, int64_t length) {
    const struct rlk_set_event *found = (const struct rlk_set_event *)own_slot()->data;
    const int room = rlk_most_bytes / sizeof *found;
    long result = ask(rlk_request_await_set, descriptor, most < room ? most : room, length, 0);
    for (long index = 0; index < result; index++)
        events[index] = (struct epoll_event){.events = found[index].events, .data.u64 = found[index].data};
    if (result == 0 && length == 0) count_step();
    return result;
}

static long change_set(int descriptor, int operation, int other, const struct epoll_event *event) {
    struct rlk_set_event change = {0};
    if (event) change = (struct rlk_set_event){.events = event->events, .data = event->data.u64};
    memcpy(own_slot()->data, &change, sizeof change);
    own_slot()->count = sizeof change;
    return ask(rlk_request_change_set, descriptor, operation, other, 0);
}

static long poll_descriptors(struct pollfd *descriptors, size_t count, int64_t length, int is_select) {
    size_t size = count * sizeof *descriptors;
    if (size > rlk_most_bytes) return -EINVAL;
    memcpy(own_slot()->data, descriptors, size);
    own_slot()->count = size;
    long result = ask(rlk_request_poll, 0, length, is_select, 0);
    if (result >= 0) memcpy(descriptors, own_slot()->data, size);
    if (result == 0 && length == 0) count_step();
    return result;
}

static long select_descriptors(int count, fd_set *reading, fd_set *writing, fd_set *failing, int64_t length) {
    // As the kernel has it, an end of input can be read, and a failure as well as an output can be written.
    enum { input = POLLIN | POLLHUP | POLLERR, output = POLLOUT | POLLERR };
    struct pollfd requests[FD_SETSIZE];
    int used = 0;
    if (count > FD_SETSIZE) count = FD_SETSIZE;
    for (int descriptor = 0; descriptor < count; descriptor++) {
        short events = 0;
        if (reading && FD_ISSET(descriptor, reading)) events |= input;
        if (writing && FD_ISSET(descriptor, writing)) events |= output;
        if (failing && FD_ISSET(descriptor, failing)) events |= POLLPRI;
        if (events) requests[used++] = (struct pollfd){descriptor, events, 0};
    }
    long result = poll_descriptors(requests, used, length, 1), found = 0;
    if (result < 0) return result;
    for (int index = 0; index < used; index++)
        if (requests[index].revents & POLLNVAL) return -EBADF;
    if (reading) FD_ZERO(reading);
    if (writing) FD_ZERO(writing);
    if (failing) FD_ZERO(failing);
    for (int index = 0; index < used; index++) {
        const struct pollfd *request = &requests[index];
        if (request->events & POLLIN && request->revents & input) FD_SET(request->fd, reading), found++;
        if (request->events & POLLOUT && request->revents & output) FD_SET(request->fd, writing), found++;
        if (request->events & POLLPRI && request->revents & POLLPRI) FD_SET(request->fd, failing), found++;
    }
    return found;
}

static int kind_of(clockid_t clock) {
    return clock == CLOCK_REALTIME ? rlk_clock_wall : clock == CLOCK_BOOTTIME ? rlk_clock_boot : rlk_clock_monotonic;
}

/// Returns a time in nanoseconds, at most a hundred years; -1 if it is none.
static int64_t valid_time(const struct timespec *time) {
    const int64_t second = 1000000000, century = 100 * 365 * 86400ll;
    if (time->tv_sec < 0 || (uint64_t)time->tv_nsec >= (uint64_t)second) return -1;
    return (time->tv_sec < century ? time->tv_sec : century) * second + time->tv_nsec;
}

/// Copies what an answer says about a timer.
static long copy_timer(long result, struct itimerspec *timer) {
    const int64_t second = 1000000000, *numbers = (const int64_t *)own_slot()->data;
    if (result == 0 && timer)
        *timer = (struct itimerspec){
            {numbers[1] / second, numbers[1] % second}, {numbers[0] / second, numbers[0] % second}};
    return result;
}

static long set_timer(int descriptor, int flags, const struct itimerspec *time, struct itimerspec *former) {
    int64_t length = valid_time(&time->it_value), period = valid_time(&time->it_interval);
    if (length < 0 || period < 0 || flags & ~(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET)) return -EINVAL;
    return copy_timer(
        ask(rlk_request_set_timer, descriptor, flags & TFD_TIMER_ABSTIME, length, period), former);
}

// MARK: The call

long answer_stream(const struct call *call, int *is_known) {
    int descriptor = (int)call->a;
    void *second = (void *)call->b, *third = (void *)call->c;
    struct iovec piece = {second, call->c};
    switch (call->number) {
        // Bytes
        case SYS_write: return write_pieces(descriptor, &piece, 1, NULL, 0, of_any);
        case SYS_writev: return write_pieces(descriptor, second, call->c, NULL, 0, of_any);
        case SYS_sendto: return write_pieces(descriptor, &piece, 1, (void *)call->e, call->f, call->d);
        case SYS_sendmsg: return send_message(descriptor, second, call->c);
        case SYS_sendmmsg: return send_messages(descriptor, second, call->c, call->d);
        case SYS_read: return read_into(descriptor, &piece, 1, of_any);
        case SYS_readv: return read_into(descriptor, second, call->c, of_any);
        case SYS_recvfrom: {
            long result = read_into(descriptor, &piece, 1, call->d);
            if (result >= 0) copy_address((void *)call->e, (socklen_t *)call->f);
            return result;
        }
        case SYS_recvmsg: return receive_message(descriptor, second, call->c);
        case SYS_recvmmsg: return receive_messages(descriptor, second, call->c, call->d);

        // Sockets and pipes
        case SYS_socket: {
            int type = call->b & 0xf;
            if (type != SOCK_STREAM && type != SOCK_DGRAM) return -ESOCKTNOSUPPORT;
            long result = ask(rlk_request_socket, 0, call->a, type == SOCK_DGRAM, 0);
            return with_flags(result, call->b & SOCK_NONBLOCK);
        }
        case SYS_socketpair: return make_pair(call->a, call->b, (int *)call->d);
        case SYS_pipe: return make_pair(0, 0, (int *)call->a);
        case SYS_pipe2: return make_pair(0, call->b & O_NONBLOCK ? SOCK_NONBLOCK : 0, (int *)call->a);
        case SYS_bind: return with_address(rlk_request_bind, descriptor, second, call->c);
        case SYS_connect: return with_address(rlk_request_connect, descriptor, second, call->c);
        case SYS_listen: return ask(rlk_request_listen, descriptor, call->b, 0, 0);
        case SYS_accept: return accept_connection(descriptor, second, third, 0);
        case SYS_accept4: return accept_connection(descriptor, second, third, call->d);
        case SYS_shutdown: return ask(rlk_request_shut_down, descriptor, call->b, 0, 0);
        case SYS_getsockname: return name(descriptor, 0, second, third);
        case SYS_getpeername: return name(descriptor, 1, second, third);
        case SYS_setsockopt: return set_option(descriptor, call->b, call->c, (void *)call->d, call->e);
        case SYS_getsockopt: return find_option(descriptor, call->b, call->c, (void *)call->d, (socklen_t *)call->e);

        // Any descriptor
        case SYS_dup: return ask(rlk_request_duplicate, descriptor, 0, 0, 0);
        case SYS_dup2: case SYS_dup3: return ask(rlk_request_duplicate, descriptor, call->b, 1, 0);
        case SYS_fcntl: return control(descriptor, call->b, call->c);
        case SYS_ioctl: return control_device(descriptor, call->b, third);

        // Counters, timers, and waits
        case SYS_eventfd: return ask(rlk_request_counter, 0, call->a, 0, 0);
        case SYS_eventfd2: {
            long result = ask(rlk_request_counter, 0, call->a, !!(call->b & EFD_SEMAPHORE), 0);
            return with_flags(result, call->b & EFD_NONBLOCK);
        }
        case SYS_timerfd_create: {
            long result = ask(rlk_request_timer, 0, kind_of(call->a), 0, 0);
            return with_flags(result, call->b & TFD_NONBLOCK);
        }
        case SYS_timerfd_settime: return set_timer(descriptor, call->b, third, (void *)call->d);
        case SYS_timerfd_gettime: return copy_timer(ask(rlk_request_read_timer, descriptor, 0, 0, 0), second);
        case SYS_epoll_create: case SYS_epoll_create1: return ask(rlk_request_set, 0, 0, 0, 0);
        case SYS_epoll_ctl: return change_set(descriptor, call->b, call->c, (void *)call->d);
        case SYS_epoll_wait: case SYS_epoll_pwait:
            return await_set(descriptor, second, call->c, length_of_milliseconds(call->d));
        case SYS_epoll_pwait2: return await_set(descriptor, second, call->c, length_of((void *)call->d));
        case SYS_poll: return poll_descriptors((void *)call->a, call->b, length_of_milliseconds(call->c), 0);
        case SYS_ppoll: return poll_descriptors((void *)call->a, call->b, length_of(third), 0);
        case SYS_select:
            return select_descriptors(call->a, second, third, (void *)call->d, length_of_old((void *)call->e));
        case SYS_pselect6:
            return select_descriptors(call->a, second, third, (void *)call->d, length_of((void *)call->e));

        default: *is_known = 0; return 0;
    }
}

#endif
