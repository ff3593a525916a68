internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// Records all answers of the world to a thread.
final class RecordingTape: Tape {
    private var writer: TapeWriter
    private var lastTime: Int64 = 0
    /// The numbers of vain looks for mail, and of posts, by the thread since the last event.
    private var looks: UInt64 = 0
    private var posts: UInt64 = 0
    private let keepsPayloads: Bool
    private let keepsOutput: Bool

    init(number: UInt32, _ file: RecordFile) {
        writer = TapeWriter(file, tape: number)
        (keepsPayloads, keepsOutput) = (file.options.keepsPayloads, file.options.keepsOutput)
        super.init(number: number)
    }

    deinit { writer.end() }

    /// Begins an event of at most `count` bytes after its kind.
    @inline(__always)
    private func begin(_ kind: EventKind, _ count: Int) -> Bool {
        (looks, posts) = (0, 0)
        guard writer.begin(count + 1) else { return false }
        writer.put(kind.rawValue)
        return true
    }

    // MARK: The driver

    override func clock(_ ask: () -> RunLoop.Instant) -> RunLoop.Instant {
        let now = ask()
        (looks, posts) = (0, 0)
        guard writer.begin(12) else { return now }
        let passed = UInt64(bitPattern: now.nanoseconds &- lastTime)
        lastTime = now.nanoseconds
        // Six bits in the first byte, and the others as in any number: two bytes for up to 8 µs.
        writer.put(0x80 | (passed >= 0x40 ? 0x40 : 0) | UInt8(truncatingIfNeeded: passed & 0x3f))
        if passed >= 0x40 { writer.put(passed >> 6) }
        writer.commit()
        return now
    }

    override func wait(
        until deadline: RunLoop.Instant, into ready: ReadyQueue, _ ask: () -> WaitOutcome
    ) -> WaitOutcome {
        let before = ready.count
        let outcome = ask()
        let count = ready.count - before
        let check = writer.check.short
        guard begin(.wait, 13) else { return outcome }
        writer.put(UInt8(truncatingIfNeeded: check))
        writer.put(UInt8(truncatingIfNeeded: check >> 8))
        writer.put(deadline.shortCheck)
        writer.put(UInt64(count))
        for index in before..<before + count {
            guard writer.begin(21) else { return outcome }
            let (token, events) = ready[index]
            writer.put(UInt64(token.slot))
            writer.put(UInt64(token.version))
            writer.put(events.rawValue)
        }
        writer.commit()
        return outcome
    }

    // MARK: Mail

    override func posted(isRefused: Bool) -> Bool {
        if isRefused { note(.refused, after: posts) } else { posts += 1 }
        return isRefused
    }

    override func finds(_ isThere: Bool) -> Bool {
        if isThere { note(.foundMail, after: looks) } else { looks += 1 }
        return isThere
    }

    /// Notes an event that happened after `count` posts or looks.
    @inline(__always)
    private func note(_ kind: EventKind, after count: UInt64) {
        if begin(kind, 10) { writer.put(count) }
        writer.commit()
    }

    override func decides(_ decision: Bool) -> Bool {
        if begin(.decided, 1) { writer.put(decision ? UInt8(1) : 0) }
        writer.commit()
        return decision
    }

    override func takes(_ waiting: [UInt32]) -> [UInt32] {
        // Runs of letters from one sender.
        var runs: [(sender: UInt32, count: UInt64)] = []
        for sender in waiting {
            if runs.last?.sender == sender { runs[runs.count - 1].count += 1 } else { runs.append((sender, 1)) }
        }
        guard begin(.tookMail, 10) else { return waiting }
        writer.put(UInt64(runs.count))
        for run in runs {
            guard writer.begin(20) else { return waiting }
            writer.put(UInt64(run.sender))
            writer.put(run.count)
        }
        writer.commit()
        return waiting
    }

    // MARK: Calls

    override func call<Result>(
        _ kind: EventKind, _ arguments: [Argument], _ coding: Coding<Result>, _ ask: () -> Result
    ) -> Result {
        let result = ask()
        let reason = errno
        var bytes = ByteEncoder()
        coding.encode(result, &bytes)
        bytes.put(Int(reason))
        if begin(kind, 0) {
            put(block: Argument.encode(arguments))
            put(block: bytes.bytes)
        }
        writer.commit()
        errno = reason
        return result
    }

    private func put(block: [UInt8]) {
        guard writer.begin(10) else { return }
        writer.put(UInt64(block.count))
        block.withUnsafeBytes { writer.put($0) }
    }

    override func read(
        _ kind: EventKind, _ descriptor: Int32, at offset: Int?, into room: UnsafeMutableRawBufferPointer,
        _ ask: () -> Int
    ) -> Int {
        let count = ask()
        let reason = errno
        if begin(kind, 34) {
            writer.put(Int(descriptor).zigzag)
            if let offset { writer.put(offset.zigzag) }
            writer.put((count < 0 ? -Int(reason) : count).zigzag)
            if count > 0 {
                let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<min(count, room.count)])
                if keepsPayloads { writer.put(bytes) } else { put(fixed: TapeCheck.digest(bytes)) }
            }
        }
        writer.commit()
        errno = reason
        return count
    }

    override func write(
        _ kind: EventKind, _ descriptor: Int32, at offset: Int?, _ bytes: UnsafeRawBufferPointer, _ ask: () -> Int
    ) -> Int {
        let count = ask()
        let reason = errno
        if begin(kind, 44) {
            writer.put(Int(descriptor).zigzag)
            if let offset { writer.put(offset.zigzag) }
            writer.put(bytes.count.zigzag)
            writer.put((count < 0 ? -Int(reason) : count).zigzag)
            // Only the bytes that were taken: a large output is offered many times.
            if count > 0 {
                let taken = UnsafeRawBufferPointer(rebasing: bytes[..<count])
                put(fixed: TapeCheck.digest(taken))
                if keepsOutput { writer.put(taken) }
            }
        }
        writer.commit()
        errno = reason
        return count
    }

    @inline(__always)
    private func put(fixed number: UInt32) {
        for shift in stride(from: UInt32(0), to: 32, by: 8) { writer.put(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    override func end() {
        let check = writer.check.short
        if begin(.end, 2) {
            writer.put(UInt8(truncatingIfNeeded: check))
            writer.put(UInt8(truncatingIfNeeded: check >> 8))
        }
        writer.commit()
        writer.end()
    }
}

extension RunLoop.Instant {
    /// A byte that tells one date from most others.
    var shortCheck: UInt8 {
        var check = TapeCheck()
        withUnsafeBytes(of: nanoseconds) { check.add($0) }
        return UInt8(truncatingIfNeeded: check.short)
    }
}
