import Glibc
import RunLoopKit

/// Another library's loop that waits for a guest, without a limit of its own.
protocol Host: SendableMetatype {
    init(for guest: RunLoop.Guest) throws

    /// Waits until the guest's descriptor is readable, or for a time that no test needs.
    ///
    /// - Returns: `true` if the descriptor was readable.
    func wait(in mode: RunLoop.Mode, _ limit: Duration) -> Bool
}

extension Host {
    /// A time that no test needs.
    static var never: Duration { .seconds(120) }

    /// Runs the guest whenever it is readable until `isDone`.
    ///
    /// - Returns: the number of wake-ups; `nil` if the next one was lost.
    func run(_ guest: RunLoop.Guest, in mode: RunLoop.Mode = .default, until isDone: () -> Bool) -> Int? {
        var count = 0
        while !isDone() {
            guard wait(in: mode, Self.never) else { return nil }
            count += 1
            guest.run(in: mode)
        }
        return count
    }
}

struct PollHost: Host {
    private let descriptor: Int32

    init(for guest: RunLoop.Guest) throws {
        descriptor = try guest.fileDescriptor
    }

    func wait(in mode: RunLoop.Mode, _ limit: Duration) -> Bool {
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&ready, 1, Int32(limit / .milliseconds(1))) == 1 && ready.revents == Int16(POLLIN)
    }
}

final class EpollHost: Host {
    private let descriptor = epollCreate(0)

    init(for guest: RunLoop.Guest) throws {
        var event: [UInt32] = [UInt32(POLLIN), 0, 0, 0]
        let status = epollControl(descriptor, 1, try guest.fileDescriptor, &event)
        precondition(status == 0, "epoll_ctl (errno \(errno))")
    }

    deinit {
        close(descriptor)
    }

    func wait(in mode: RunLoop.Mode, _ limit: Duration) -> Bool {
        var event: [UInt32] = [0, 0, 0, 0]
        return epollWait(descriptor, &event, 1, Int32(limit / .milliseconds(1))) == 1
    }
}

// Swift's Glibc module lacks them.

@_silgen_name("epoll_create1")
private func epollCreate(_ flags: Int32) -> Int32

@_silgen_name("epoll_ctl")
private func epollControl(
    _ epoll: Int32, _ operation: Int32, _ descriptor: Int32, _ event: UnsafeMutableRawPointer
) -> Int32

@_silgen_name("epoll_wait")
private func epollWait(_ epoll: Int32, _ events: UnsafeMutableRawPointer, _ count: Int32, _ limit: Int32) -> Int32
