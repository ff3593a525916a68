internal import Glibc
@_spi(Ports) package import RunLoopKit

/// A driver that waits with `poll(2)`.
package final class PollDriver: Driver {
    private struct Watch {
        let token: SourceToken
        let descriptor: Int32
        let events: DescriptorEvents
    }

    private let pipe: WakePipe
    private var watches: [Watch] = []
    /// The token that hears of each change of the wall clock, and the clock's distance from the monotonic one.
    private var clockWatch: (token: SourceToken, offset: Duration)?

    package init(waker: WakePipe) {
        pipe = waker
    }

    package var now: RunLoop.Instant { pipe.now }

    package var waker: any Waker { pipe }

    package func wait(until deadline: RunLoop.Instant, into ready: ReadyQueue) -> WaitOutcome {
        var polled = [pollfd(fd: pipe.reader, events: Int16(POLLIN), revents: 0)]
        polled += watches.map { pollfd(fd: $0.descriptor, events: $0.events.polled, revents: 0) }
        repeat {
            let rest = min(deadline, nextLookAtClock()) - now
            let count = poll(&polled, nfds_t(polled.count), rest.inMilliseconds)
            precondition(count >= 0 || errno == EINTR, "poll failed with errno \(errno)")
            if count < 0 { polled.indices.forEach { polled[$0].revents = 0 } }
        } while !report(polled, into: ready) && now < deadline
        return .woke
    }

    /// Reports what `poll` has found, and returns whether that ends a wait.
    private func report(_ polled: [pollfd], into ready: ReadyQueue) -> Bool {
        for (watch, found) in zip(watches, polled.dropFirst()) {
            let events = watch.events.intersection(DescriptorEvents(found.revents))
            if !events.isEmpty { ready.append(watch.token, events) }
        }
        reportClock(into: ready)
        let isWoken = polled[0].revents != 0
        if isWoken { pipe.drain() }
        return isWoken || !ready.isEmpty
    }

    package func watch(
        _ descriptor: Int32, for events: DescriptorEvents, token: SourceToken
    ) throws(DescriptorError) {
        try check(descriptor)
        watches.append(Watch(token: token, descriptor: descriptor, events: events))
    }

    package func unwatch(_ token: SourceToken) {
        watches.removeAll { $0.token == token }
        if clockWatch?.token == token { clockWatch = nil }
    }

    // MARK: The wall clock

    /// The wall clock; a test has one that it can set.
    package var wallClock: () -> Duration = { Duration(CLOCK_REALTIME) }

    package func watchWallClock(token: SourceToken) {
        clockWatch = (token, clockOffset())
    }

    /// While the clock is watched, a wait looks at it once a second.
    private func nextLookAtClock() -> RunLoop.Instant { clockWatch == nil ? .distantFuture : now + .seconds(1) }

    /// Reports that the clock has been set. A time server that adjusts its rate moves it by less in a second.
    private func reportClock(into ready: ReadyQueue) {
        guard let (token, former) = clockWatch else { return }
        let offset = clockOffset()
        guard offset - former > .milliseconds(5) || former - offset > .milliseconds(5) else { return }
        clockWatch = (token, offset)
        ready.append(token, .readable)
    }

    private func clockOffset() -> Duration { wallClock() - Duration(CLOCK_MONOTONIC) }
}

/// A pipe that ends a wait. It lives as long as any thread may still write to it.
package final class WakePipe: Waker {
    let reader: Int32
    private let writer: Int32

    package init() throws(RunLoop.StartError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw .last("make a pipe to wake the loop") }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        (reader, writer) = (ends[0], ends[1])
    }

    deinit {
        close(reader)
        close(writer)
    }

    package var now: RunLoop.Instant {
        let time = Duration(CLOCK_MONOTONIC).components
        return RunLoop.Instant(nanoseconds: time.seconds * 1_000_000_000 + time.attoseconds / 1_000_000_000)
    }

    package func wake() {
        // A full pipe wakes already.
        var byte: UInt8 = 0
        while write(writer, &byte, 1) < 0 && errno == EINTR {}
    }

    func drain() {
        var bytes = [UInt8](repeating: 0, count: 256)
        while read(reader, &bytes, bytes.count) > 0 {}
    }
}

extension DescriptorEvents {
    fileprivate var polled: Int16 {
        (contains(.readable) ? Int16(POLLIN) : 0) | (contains(.writable) ? Int16(POLLOUT) : 0)
    }

    /// The events that a hang-up and an error end as well.
    fileprivate init(_ found: Int16) {
        self = []
        if found & Int16(POLLIN | POLLHUP | POLLERR | POLLNVAL) != 0 { insert(.readable) }
        if found & Int16(POLLOUT | POLLHUP | POLLERR | POLLNVAL) != 0 { insert(.writable) }
    }
}

extension Duration {
    /// The duration in whole milliseconds, rounded up, at least zero and at most a day.
    fileprivate var inMilliseconds: Int32 {
        let time = max(.zero, min(self, .seconds(86_400))).components
        return Int32(time.seconds * 1000 + (time.attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }

    fileprivate init(_ clock: Int32) {
        var time = timespec()
        clock_gettime(clock, &time)
        self = .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
