import CShims
import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// Thousands of signals from many threads to three loops.
@Suite("Signals under load", .timeLimit(.minutes(15)))
struct SignalStressTests {
    @Test("of 10,000 queued signals from four threads, taken by three, none is lost to any of three loops")
    func queued() async {
        await #expect(processExitsWith: .success) {
            let total = 10_000
            let signal = Signal.realTime(2)
            let hearers = Hearers(signal)
            let receivers = (0..<3).map { _ in Receiver() }
            let senders = (0..<4).map { sender in
                PlainThread {
                    for index in 0..<total / 4 {
                        let thread = receivers[(sender + index) % 3].handle
                        // The system's queue is limited for a user; a sender that finds it full waits.
                        while pthread_kill(thread, signal.rawValue) != 0 { usleep(100) }
                    }
                }
            }
            for sender in senders { sender.join() }
            let isAll = eventually { hearers.counts.allSatisfy { $0.value >= total } }
            let counts = hearers.end()
            for receiver in receivers { receiver.end() }
            precondition(isAll && counts == [total, total, total], "\(counts)")
        }
    }

    @Test("of 10,000 standard signals every loop receives at least one after the last was sent")
    func standard() async {
        await #expect(processExitsWith: .success) {
            // The disposition that is restored at the end: a signal still on its way must not end the process.
            try Signal.ignore(.user1)
            let hearers = Hearers(.user1)
            let receiver = Receiver()
            for _ in 0..<10 {
                let senders = (0..<4).map { _ in
                    PlainThread { for _ in 0..<250 { kill(getpid(), SIGUSR1) } }
                }
                for sender in senders { sender.join() }
                let before = hearers.counts.map(\.value)
                kill(getpid(), SIGUSR1)
                let isHeard = eventually { zip(hearers.counts, before).allSatisfy { $0.value > $1 } }
                precondition(isHeard, "the last signal was not heard: \(before), \(hearers.counts.map(\.value))")
            }
            let counts = hearers.end()
            receiver.end()
            precondition(counts.allSatisfy { $0 <= 10_010 }, "more were heard than were sent: \(counts)")
        }
    }

    @Test("sources come and go while signals rain, and no signal is written to a descriptor that is not the library's")
    func comingAndGoing() async {
        await #expect(processExitsWith: .success) {
            // The disposition that is restored at the end: a signal still on its way must not end the process.
            try Signal.ignore(.user1)
            let keeper = Hearers(.user1)
            let done = Counter()
            let receiver = Receiver()
            let strays = Counter()
            let workers = (0..<2).map { _ in
                PlainThread {
                    let loop = RunLoop.current
                    for _ in 0..<500 {
                        let source = try! SignalSource(signal: .user1) { _ in }
                        try! loop.add(source, forMode: .default)
                        loop.run(in: .default, until: .distantPast)
                        source.invalidate()
                        // The next descriptor gets the free number. A late write would be found in it.
                        let other = rlk_eventfd()
                        sched_yield()
                        var bytes: UInt64 = 0
                        if read(other, &bytes, 8) > 0 { strays.add() }
                        close(other)
                    }
                }
            }
            let sender = PlainThread { while done.value == 0 { kill(getpid(), SIGUSR1) } }
            for worker in workers { worker.join() }
            done.add()
            sender.join()
            _ = keeper.end()
            receiver.end()
            precondition(strays.value == 0)
        }
    }
}

/// Three loops, each with a source for a signal.
private final class Hearers: Sendable {
    let counts = [Counter(), Counter(), Counter()]
    private let threads: [LoopThread]

    init(_ signal: Signal) {
        let ready = Counter()
        threads = counts.map { count in
            LoopThread(name: "hearer") { loop in
                try! loop.add(try! SignalSource(signal: signal) { count.add($0.count) }, forMode: .default)
                ready.add()
            }
        }
        precondition(eventually { ready.value == 3 })
    }

    /// Ends the loops and returns their counts of signals.
    func end() -> [Int] {
        for thread in threads {
            thread.stop()
            thread.join()
        }
        return counts.map(\.value)
    }
}

/// A thread that can receive signals.
///
/// The thread only waits in a system call that is restarted after a signal. ThreadSanitizer defers signals while a
/// thread is not in such a call, and then keeps one of several, which would spoil the count: so the thread receives
/// signals only while it sleeps.
private final class Receiver: Sendable {
    private let ends: [Int32]
    private let thread: PlainThread

    init() {
        var ends: [Int32] = [-1, -1]
        precondition(pipe(&ends) == 0)
        self.ends = ends
        let reader = ends[0]
        let name = Locked("")
        thread = PlainThread {
            let own = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { bytes in
                let count = readlink("/proc/thread-self", bytes.baseAddress!, 64)
                return String(decoding: UnsafeRawBufferPointer(bytes).prefix(max(0, count)), as: UTF8.self)
            }
            name.withLock { $0 = own }
            var byte: UInt8 = 0
            while read(reader, &byte, 1) < 0 && errno == EINTR {}
        }
        precondition(eventually { Receiver.isAsleep(name.withLock { $0 }) })
    }

    /// - Parameter thread: the thread's name in the system's list of processes.
    private static func isAsleep(_ thread: String) -> Bool {
        guard !thread.isEmpty else { return false }
        return contents(of: "/proc/\(thread)/stat").contains(") S ")
    }

    var handle: pthread_t { thread.handle }

    func end() {
        close(ends[1])
        thread.join()
        close(ends[0])
    }
}
