import Glibc
// No loop: a bare store of timers in Swift, the floor's heap with a class and a closure for each timer. It shows the
// cost of the language.
import Harness

private final class Timer {
    var position: Int32 = 0
    let block: () -> Void
    init(_ block: @escaping () -> Void) { self.block = block }
}

private struct Heap {
    struct Entry {
        var deadline: UInt64
        var timer: Unmanaged<Timer>
    }

    private var entries = UnsafeMutablePointer<Entry>.allocate(capacity: 1024)
    private var capacity = 1024
    private(set) var count = 0

    var nextDeadline: UInt64? { count > 0 ? entries[0].deadline : nil }

    private func put(_ position: Int, _ entry: Entry) {
        entries[position] = entry
        entry.timer._withUnsafeGuaranteedRef { $0.position = Int32(truncatingIfNeeded: position) }
    }

    private func siftUp(from start: Int, _ entry: Entry) {
        var position = start
        while position > 0 {
            let parent = (position &- 1) / 4
            if entries[parent].deadline <= entry.deadline { break }
            put(position, entries[parent])
            position = parent
        }
        put(position, entry)
    }

    private func siftDown(from start: Int, _ entry: Entry) {
        var position = start
        while true {
            let first = 4 &* position &+ 1
            if first >= count { break }
            var least = first
            var child = first &+ 1
            while child < min(first &+ 4, count) {
                if entries[child].deadline < entries[least].deadline { least = child }
                child &+= 1
            }
            if entries[least].deadline >= entry.deadline { break }
            put(position, entries[least])
            position = least
        }
        put(position, entry)
    }

    private func replace(_ position: Int, _ entry: Entry) {
        if position > 0 && entries[(position &- 1) / 4].deadline > entry.deadline {
            siftUp(from: position, entry)
        } else {
            siftDown(from: position, entry)
        }
    }

    mutating func insert(_ timer: Timer, at deadline: UInt64) {
        if count == capacity {
            let larger = UnsafeMutablePointer<Entry>.allocate(capacity: capacity * 2)
            larger.update(from: entries, count: count)
            entries.deallocate()
            entries = larger
            capacity *= 2
        }
        count &+= 1
        siftUp(from: count &- 1, Entry(deadline: deadline, timer: .passRetained(timer)))
    }

    mutating func move(_ timer: Timer, to deadline: UInt64) {
        let position = Int(timer.position)
        replace(position, Entry(deadline: deadline, timer: entries[position].timer))
    }

    mutating func remove(_ timer: Timer) -> Timer {
        let position = Int(timer.position)
        let removed = entries[position].timer
        count &-= 1
        if position != count { replace(position, entries[count]) }
        return removed.takeRetainedValue()
    }

    mutating func removeFirst() -> Timer {
        remove(entries[0].timer.takeUnretainedValue())
    }
}

nonisolated(unsafe) private var heap = Heap()
nonisolated(unsafe) private var now: UInt64 = 0
nonisolated(unsafe) private var isStopped = false

private func readClock() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

private func timer(_ handle: UnsafeMutableRawPointer?) -> Timer {
    Unmanaged.fromOpaque(handle!).takeUnretainedValue()
}

var peer = Peer()
peer.caches_time = true
peer.start = { _, _ in now = readClock() }
peer.sync_time = { now = readClock() }
peer.run = {
    isStopped = false
    while !isStopped, let deadline = heap.nextDeadline {
        now = readClock()
        if deadline > now {
            var time = timespec(tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil)
            continue
        }
        heap.removeFirst().block()
    }
}
peer.stop = { isStopped = true }
peer.add = { delay, number in
    let timer = Timer { harness_fired(number) }
    heap.insert(timer, at: now &+ delay)
    return Unmanaged.passUnretained(timer).toOpaque()
}
peer.cancel = { _ = heap.remove(timer($0)) }
peer.rearm = { handle, delay, _ in heap.move(timer(handle), to: now &+ delay) }

exit(harness_main(CommandLine.argc, CommandLine.unsafeArgv, &peer))
