internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// Answers a thread from a record, as long as the requests are the recorded ones.
final class ReplayingTape: Tape {
    private let replay: Replay
    let name: String
    private var reader: TapeReader
    private var eventBegin: TapeReader
    /// The number of the next event.
    private(set) var event: UInt64 = 0
    private(set) var lastTime: Int64 = 0
    private var looks: UInt64 = 0
    private var posts: UInt64 = 0
    /// The descriptors that the loop watches.
    private var tokens: Set<SourceToken> = []
    /// `true` once the replay has ended on this thread. From then on the answers have no meaning.
    private var hasStopped = false

    init(number: UInt32, named name: String, _ replay: Replay) {
        (self.name, self.replay) = (name, replay)
        reader = TapeReader(replay.contents[number])
        eventBegin = reader
        super.init(number: number)
    }

    // MARK: Events

    /// Ends the replay on this thread. If the thread is ended there, its loop still releases its objects, and makes
    /// calls.
    private func stop(_ handler: () -> Never) -> Never {
        hasStopped = true
        handler()
    }

    /// Ends the replay where the record ends: before this event, or within it.
    private func endsHere() -> Never {
        stop { replay.tapeEnded(number) }
    }

    /// Begins the next event, which must be of `kind`.
    private func begin(_ kind: EventKind, _ asked: @autoclosure () -> String) {
        beginAny()
        guard reader.byte() == kind.rawValue else { diverge(asked()) }
    }

    /// Begins the next event of any kind. A replay at its end has none.
    private func beginAny() {
        if reader.isAtEnd { endsHere() }
        eventBegin = reader
        replay.turns.wait(number, for: nextTime)
        if replay.ends(at: event, of: number) { stop { replay.options.onEnd(.limit) } }
    }

    /// The time of the next event: the last reading of the clock or, if the event is a wait, the reading after it.
    private var nextTime: Int64 {
        var ahead = reader
        if reader.next == EventKind.wait.rawValue {
            _ = ahead.byte()
            _ = ahead.sum()
            _ = EventText.passOverWait(&ahead)
        }
        return ahead.next >= 0x80 ? EventText.time(&ahead, after: lastTime) : lastTime
    }

    private func ended() {
        if reader.isOver { endsHere() }
        event += 1
        (looks, posts) = (0, 0)
        replay.eventEnded()
    }

    private func diverge(_ asked: String) -> Never {
        var recorded = eventBegin
        diverge(EventText.describe(&recorded, after: lastTime, replay.contents), asked)
    }

    private func diverge(_ recorded: String, _ asked: String) -> Never {
        if reader.isOver { endsHere() }
        stop { replay.options.onDivergence(Divergence(thread: name, event: event, recorded: recorded, asked: asked)) }
    }

    /// Reports a damaged event. The record was verified, so its bytes have changed since, or were made to have the
    /// right sums.
    private func damaged() -> Never { diverge("a damaged event", "no more") }

    /// Ends the replay where the program reads bytes that the record does not have.
    func lacksPayload() -> Never {
        if reader.isOver { endsHere() }
        stop { replay.options.onEnd(.withoutPayload(thread: name, event: event)) }
    }

    // MARK: The driver

    override func clock(_ ask: () -> RunLoop.Instant) -> RunLoop.Instant {
        if hasStopped { return RunLoop.Instant(nanoseconds: lastTime) }
        beginAny()
        guard reader.next >= 0x80 else { diverge("the time") }
        lastTime = EventText.time(&reader, after: lastTime)
        ended()
        return RunLoop.Instant(nanoseconds: lastTime)
    }

    override func wait(
        until deadline: RunLoop.Instant, into ready: ReadyQueue, _ ask: () -> WaitOutcome
    ) -> WaitOutcome {
        if hasStopped { return .woke }
        begin(.wait, EventText.wait(until: deadline))
        _ = reader.sum()
        let recorded = reader.byte()
        guard recorded == deadline.shortCheck else { diverge(EventText.wait(until: deadline)) }
        for _ in 0..<reader.unsigned() {
            let slot = UInt32(truncatingIfNeeded: reader.unsigned())
            let token = SourceToken(slot: slot, version: UInt32(truncatingIfNeeded: reader.unsigned()))
            let events = DescriptorEvents(rawValue: reader.byte())
            guard !reader.isOver, tokens.contains(token) else { damaged() }
            ready.append(token, events)
        }
        ended()
        return .woke
    }

    override func watched(_ token: SourceToken) { tokens.insert(token) }
    override func unwatched(_ token: SourceToken) { tokens.remove(token) }

    // MARK: Mail

    override func posted(isRefused: Bool) -> Bool {
        if hasStopped { return isRefused }
        if comes(.refused, after: posts, "a post") { return true }
        posts += 1
        return false
    }

    override func finds(_ isThere: Bool) -> Bool {
        if hasStopped { return false }
        if comes(.foundMail, after: looks, "mail") { return true }
        looks += 1
        return false
    }

    /// Returns `true` if the next event is of `kind`, and happened after `count` posts or looks.
    private func comes(_ kind: EventKind, after count: UInt64, _ asked: String) -> Bool {
        guard reader.next == kind.rawValue else { return false }
        var ahead = reader
        _ = ahead.byte()
        let recorded = ahead.unsigned()
        if ahead.isOver { endsHere() }
        guard recorded == count else { return false }
        begin(kind, asked)
        _ = reader.unsigned()
        ended()
        return true
    }

    override func decides(_ decision: Bool) -> Bool {
        if hasStopped { return decision }
        begin(.decided, "a decision that depends on other threads")
        let decision = reader.byte() != 0
        ended()
        return decision
    }

    override func takes(_ waiting: [UInt32]) -> [UInt32] {
        if hasStopped { return waiting }
        begin(.tookMail, "its mail")
        var senders: [UInt32] = []
        for _ in 0..<reader.unsigned() {
            let sender = UInt32(truncatingIfNeeded: reader.unsigned())
            let count = reader.unsigned()
            guard !reader.isOver, count <= 1 << 32 else { damaged() }
            senders += repeatElement(sender, count: Int(count))
        }
        ended()
        return senders
    }

    // MARK: Calls

    override func call<Result>(
        _ kind: EventKind, _ arguments: [Argument], _ coding: Coding<Result>, _ ask: () -> Result
    ) -> Result {
        if hasStopped {
            var nothing = ByteDecoder([])
            return coding.decode(&nothing)
        }
        let asked = Argument.encode(arguments)
        begin(kind, EventText.call(kind, asked))
        let recorded = reader.block()
        guard recorded == asked else { diverge(EventText.call(kind, asked)) }
        var bytes = ByteDecoder(reader.block())
        let result = coding.decode(&bytes)
        let reason = bytes.int32()
        guard bytes.isValid else { damaged() }
        ended()
        errno = reason
        return result
    }

    override func read(
        _ kind: EventKind, _ descriptor: Int32, at offset: Int?, into room: UnsafeMutableRawBufferPointer,
        _ ask: () -> Int
    ) -> Int {
        if hasStopped { return 0 }
        var asked: String { EventText.call(kind, [Int(descriptor), offset].compactMap(\.self)) }
        begin(kind, asked)
        guard reader.number() == Int(descriptor), offset == nil || reader.number() == offset else { diverge(asked) }
        let result = reader.number()
        if result > 0 {
            guard replay.contents.keepsPayloads else { lacksPayload() }
            guard result <= room.count else { diverge("\(asked) with room for \(room.count) bytes") }
            reader.fill(UnsafeMutableRawBufferPointer(rebasing: room[..<result]))
        }
        ended()
        return finish(result)
    }

    override func write(
        _ kind: EventKind, _ descriptor: Int32, at offset: Int?, _ bytes: UnsafeRawBufferPointer, _ ask: () -> Int
    ) -> Int {
        if hasStopped { return 0 }
        var asked: String {
            "\(EventText.call(kind, [Int(descriptor), offset, bytes.count].compactMap(\.self))) of \(EventText.beginning(of: bytes))"
        }
        begin(kind, asked)
        guard reader.number() == Int(descriptor), offset == nil || reader.number() == offset,
            reader.number() == bytes.count
        else { diverge(asked) }
        let result = reader.number()
        if result > 0 {
            guard result <= bytes.count else { damaged() }
            let content = UnsafeRawBufferPointer(rebasing: bytes[..<result])
            guard reader.fixed() == TapeCheck.digest(content) else {
                diverge("\(asked), with other bytes than were recorded")
            }
            if replay.contents.keepsOutput { _ = reader.bytes(result) }
        }
        ended()
        // The output of the program is shown again.
        if descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO, result > 0 { return ask() }
        return finish(result)
    }

    /// Returns the result of a call; if negative, as -1 with `errno`.
    private func finish(_ result: Int) -> Int {
        guard result < 0 else { return result }
        errno = Int32(clamping: result.magnitude)
        return -1
    }

    override func end() {
        if hasStopped { return }
        begin(.end, "nothing more: the program has ended")
        _ = reader.sum()
        ended()
        replay.threadEnded(number)
    }
}
