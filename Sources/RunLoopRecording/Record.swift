@_spi(Ports) public import RunLoopCore
internal import RunLoopUnix

/// The contents of a record: the run, its threads, and their events in words. `Sendable`; any thread.
///
/// ```swift
/// let record = try Record(contentsOf: "/var/log/daemon/record")
/// print(record)
/// for event in record.events(ofThread: 0) { print(event) }
/// ```
public struct Record: Sendable, CustomStringConvertible {
    private let contents: RecordContents

    /// The process number of the recorded process.
    public var process: Int { contents.process }
    /// The arguments of the recorded program, except arguments beyond the first four kilobytes.
    public var arguments: [String] { contents.arguments }
    /// The wall-clock time when the recording began.
    public var wallTimeAtBegin: RunLoop.WallTime { contents.wallTime }
    /// A Boolean value that indicates whether the record includes the bytes that the program read.
    public var keepsPayloads: Bool { contents.keepsPayloads }
    /// A Boolean value that indicates whether the record includes the bytes that the program wrote.
    public var keepsOutput: Bool { contents.keepsOutput }
    /// The number of calls from threads that are not recorded. A replay stops at such a call.
    public var foreignCalls: Int { contents.foreignCalls }
    /// The names of the threads, by their numbers. The first one is `main`.
    public let threads: [Int: String]
    /// The end of the record: the end of the run, or the reason why the record ends earlier. Damage is found by
    /// comparing all bytes with their sums.
    public let end: RecordEnd
    /// The numbers of events, by thread.
    private let counts: [Int: UInt64]

    /// Reads a record, even while it is being made.
    ///
    /// - Throws: ``RecordError`` if the file cannot be read, is no record, or is damaged in its first page. O(bytes).
    public init(contentsOf path: String) throws(RecordError) {
        contents = try RecordContents(path)
        let summaries = contents.summaries()
        end = contents.end(summaries)
        var (threads, counts): ([Int: String], [Int: UInt64]) = ([:], [:])
        for (number, summary) in summaries where number < RecordLayout.lookUps {
            counts[Int(number)] = summary.events
            if number == 0 { threads[0] = "main" }
            for (thread, name) in summary.threads { threads[Int(thread)] = name }
        }
        (self.threads, self.counts) = (threads, counts)
    }

    /// An event of a thread.
    public struct Event: Sendable, Hashable, CustomStringConvertible {
        /// The event's number on its thread, from 0.
        public let number: UInt64
        /// The time on the loop's clock that the thread had last read.
        public let time: RunLoop.Instant
        /// The event in words, for example `read(9), which gave 35 bytes`.
        public let text: String

        public var description: String { "\(number) \(time) \(text)" }
    }

    /// Returns the events of a thread, read one by one. If the record was changed, they end where it cannot be read.
    public func events(ofThread number: Int) -> some Sequence<Event> {
        Events(contents, UInt32(clamping: number)).lazy.map { $0.event }
    }

    /// An event of a connection.
    enum Happening {
        case accepted(Int32, Endpoint)
        case read(Int32, Int, [UInt8])
        case wrote(Int32, Int, [UInt8])
        case closed(Int32)
    }

    /// The happenings of all threads, in the order of their times.
    var happenings: [(time: RunLoop.Instant, happening: Happening)] {
        var all: [(time: RunLoop.Instant, happening: Happening)] = []
        for number in threads.keys.sorted() {
            for case (let event, let happening?) in Events(contents, UInt32(number)) {
                all.append((event.time, happening))
            }
        }
        return all.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element)
    }

    private struct Events: Sequence, IteratorProtocol {
        private var reader: TapeReader
        private let contents: RecordContents
        private var number: UInt64 = 0
        private var time: Int64 = 0

        init(_ contents: RecordContents, _ tape: UInt32) {
            reader = TapeReader(contents[tape])
            self.contents = contents
        }

        mutating func next() -> (event: Event, happening: Happening?)? {
            guard !reader.isAtEnd else { return nil }
            var (text, happening) = ("the time", Happening?.none)
            if reader.next >= 0x80 {
                time = EventText.time(&reader, after: time)
            } else {
                guard let kind = EventKind(rawValue: reader.next) else { return nil }
                happening = self.happening(kind)
                text = EventText.describe(&reader, after: time, contents)
            }
            guard !reader.isOver else { return nil }
            defer { number += 1 }
            return (Event(number: number, time: RunLoop.Instant(nanoseconds: time), text: text), happening)
        }

        private func happening(_ kind: EventKind) -> Happening? {
            var ahead = reader
            _ = ahead.byte()
            switch kind {
            case .accept:
                _ = ahead.block()
                var result = ByteDecoder(ahead.block())
                let accepted = Coding<Accepted>.accepted.decode(&result)
                return accepted.descriptor >= 0 ? .accepted(accepted.descriptor, accepted.peer) : nil
            case .close:
                var arguments = ByteDecoder(ahead.block())
                return .closed(arguments.int32())
            case .read:
                let (descriptor, count) = (Int32(clamping: ahead.number()), ahead.number())
                return .read(descriptor, count, count > 0 && contents.keepsPayloads ? ahead.bytes(count) : [])
            case .write, .send, .sendPieces:
                let (descriptor, _, count) = (Int32(clamping: ahead.number()), ahead.number(), ahead.number())
                // The system takes no more at once.
                guard count > 0, count <= Int32.max else { return nil }
                _ = ahead.fixed()
                return .wrote(descriptor, count, contents.keepsOutput ? ahead.bytes(count) : [])
            default: return nil
            }
        }
    }

    public var description: String {
        var text =
            "process \(process), recorded from \(wallTimeAtBegin): \(escaped(arguments.joined(separator: " ")))\n"
        text += "\(end)\n"
        if !keepsPayloads { text += "without the bytes that were read\n" }
        if foreignCalls > 0 { text += "\(foreignCalls) calls of threads that are not recorded\n" }
        for (number, name) in threads.sorted(by: { $0.key < $1.key }) {
            let count = counts[number] ?? 0
            text += "thread \(number), \(escaped(name)): \(count) \(count == 1 ? "event" : "events")\n"
        }
        return text
    }
}
