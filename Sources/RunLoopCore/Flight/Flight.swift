internal import Glibc

/// The events that a ``FlightRecorder`` has kept. A value and `Sendable`.
///
/// ```swift
/// let flight = try Flight(contentsOf: "/var/lib/daemon/flight")
/// print(flight)                // a report
/// print(flight.unfinished)     // the calls that were under way when the process ended, the innermost last
/// ```
public struct Flight: Sendable {
    /// A handler that was called, or a task that ran until it waited.
    public struct Handler: Sendable, Hashable, CustomStringConvertible {
        /// Its kind.
        public let kind: RunLoop.ItemKind
        /// Its name, if it has one.
        public let name: String?
        /// The place in the program where it was made, for example `Daemon/main.swift:12`.
        public let origin: String

        public var description: String { "\(kind)" + (name.map { " \"\($0)\"" } ?? "") + " (\(origin))" }
    }

    /// Something that the loop did.
    public enum Event: Sendable, Hashable {
        /// A run in a mode began, or ended. Events within a call of a handler are nested in it.
        case runBegan(mode: String)
        case runEnded(mode: String)
        /// A handler was called; `nil` for one that there was no room to name.
        case callBegan(Handler?, mode: String)
        /// The innermost call ended.
        case callEnded(duration: Duration)
        /// The loop woke up, after so long.
        case slept(Duration)
    }

    /// An event with its time and depth.
    public struct Entry: Sendable, Hashable {
        /// When it happened, on the loop's clock.
        public let time: RunLoop.Instant
        /// The number of calls that it is nested in.
        public let depth: Int
        /// The event.
        public let event: Event
        /// For the call of a timer: how long after its date it began.
        public let lateness: Duration?
    }

    /// A call of a handler.
    public struct Call: Sendable, Hashable {
        /// The handler; `nil` for one that there was no room to name.
        public let handler: Handler?
        /// The mode of the run.
        public let mode: String
        /// When it began.
        public let begin: RunLoop.Instant
        /// How long it took; `nil` if it was still under way.
        public internal(set) var duration: Duration?
        /// How long the calls and sleeps took that were nested in it.
        public internal(set) var nested = Duration.zero
        /// The number of calls that it is nested in.
        public let depth: Int
        /// For a timer: how long after its date it began.
        public let lateness: Duration?
    }

    /// The name of the loop.
    public let loop: String
    /// The number of the process.
    public let process: Int
    /// When recording began, on the loop's clock, and the wall clock's time then.
    public let begin: RunLoop.Instant
    public let wallTimeAtBegin: RunLoop.WallTime
    /// How many events came before those that are kept.
    public let lost: Int
    /// The events, in their order.
    public let entries: [Entry]

    /// Reads the file of a recorder; also while it records, and after its process has ended in any way.
    ///
    /// - Throws: ``FlightError`` if it cannot be read, or is none. O(size).
    public init(contentsOf path: String) throws(FlightError) {
        guard let file = fopen(path, "r") else { throw .file(path, errno: errno) }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = fread(&part, 1, part.count, file)
            bytes += part[..<count]
            if count < part.count { break }
        }
        guard ferror(file) == 0 else { throw .file(path, errno: errno) }
        try self.init(bytes, written: nil)
    }

    /// How many events were written until now, lost ones too.
    package let end: Int

    /// - Parameters:
    ///   - written: how many events were written when the copy was done, if it is one of memory that changes.
    ///   - start: the number of the first event that is wanted.
    init(_ bytes: [UInt8], written: UInt64?, from start: Int = 0) throws(FlightError) {
        func word(_ offset: Int) -> UInt64 {
            bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
        }
        func field(_ field: FlightMemory.Field) -> UInt64 { word(field.rawValue * 8) }
        guard bytes.count >= FlightMemory.pageSize, field(.mark) == FlightMemory.mark,
            let events = Int(exactly: field(.events)), let nameBytes = Int(exactly: field(.nameBytes)),
            events > 0, events <= bytes.count, nameBytes >= 0, nameBytes <= bytes.count,
            bytes.count >= FlightMemory.pageSize + nameBytes + events * FlightMemory.eventSize
        else { throw .notAFlight }
        let names = Names(bytes, used: min(nameBytes, Int(clamping: field(.namesUsed))))
        let title = min(FlightMemory.longestTitle, Int(clamping: field(.titleLength)))
        loop = String(decoding: bytes[FlightMemory.titleStart..<FlightMemory.titleStart + title], as: UTF8.self)
        process = Int(clamping: field(.process))
        begin = RunLoop.Instant(nanoseconds: Int64(bitPattern: field(.loopTime)))
        wallTimeAtBegin = RunLoop.WallTime(nanoseconds: Int64(bitPattern: field(.wallTime)))

        end = Int(clamping: field(.written))
        // One more than the copy's end tells may have been half overwritten.
        let overwritten = written.map { Int(clamping: $0) + 1 - events } ?? end - events
        let first = min(end, max(start, overwritten))
        lost = first
        let ring = FlightMemory.pageSize + nameBytes
        entries = (first..<end).compactMap { number in
            let place = ring + number % events * FlightMemory.eventSize
            let event = FlightEvent(words: (word(place), word(place + 8), word(place + 16)))
            let hasDate = event.kind == .callBegan && event.value != FlightEvent.noLateness
            return names.event(event).map {
                Entry(
                    time: event.time, depth: event.depth, event: $0,
                    lateness: hasDate ? .nanoseconds(event.value) : nil)
            }
        }
    }

    /// The names of a flight, by their numbers.
    private struct Names {
        private enum Name {
            case handler(Handler)
            case mode(String)
            case other
        }

        private var names: [Name] = []

        init(_ bytes: [UInt8], used: Int) {
            var rest = bytes[FlightMemory.pageSize..<FlightMemory.pageSize + used]
            func number(_ offset: Int) -> Int {
                Int(rest[rest.startIndex + offset]) | Int(rest[rest.startIndex + offset + 1]) << 8
            }
            while rest.count >= 8 {
                let (kind, hasName) = (rest.first!, rest[rest.startIndex + 1] == 1)
                let (nameLength, fileLength, line) = (number(2), number(4), number(6))
                let length = (8 + nameLength + fileLength + 7) / 8 * 8
                guard length <= rest.count else { return }
                let texts = rest.dropFirst(8)
                let name = String(decoding: texts.prefix(nameLength), as: UTF8.self)
                let file = String(decoding: texts.dropFirst(nameLength).prefix(fileLength), as: UTF8.self)
                if kind == FlightNames.mode {
                    names.append(.mode(name))
                } else if kind < RunLoop.ItemKind.allCases.count {
                    names.append(
                        .handler(
                            Handler(
                                kind: RunLoop.ItemKind.allCases[Int(kind)], name: hasName ? name : nil,
                                origin: "\(file):\(line)")))
                } else {
                    names.append(.other)
                }
                rest = rest.dropFirst(length)
            }
        }

        private func mode(_ number: Int) -> String {
            guard number < names.count, case .mode(let name) = names[number] else { return "another mode" }
            return name
        }

        private func handler(_ number: Int) -> Handler? {
            guard number < names.count, case .handler(let handler) = names[number] else { return nil }
            return handler
        }

        func event(_ event: FlightEvent) -> Event? {
            switch event.kind {
            case .runBegan: .runBegan(mode: mode(event.mode))
            case .runEnded: .runEnded(mode: mode(event.mode))
            case .callBegan: .callBegan(handler(event.name), mode: mode(event.mode))
            case .callEnded: .callEnded(duration: .nanoseconds(event.value))
            case .slept: .slept(.nanoseconds(event.value))
            case nil: nil
            }
        }
    }

    // MARK: Answers

    /// The calls of handlers in the order in which they began. Calls whose begin is lost are not among them.
    public var calls: [Call] {
        var calls: [Call] = []
        var open: [Int] = []
        for entry in entries {
            switch entry.event {
            case .callBegan(let handler, let mode):
                // A call that is as deep as one before has its end lost.
                while let last = open.last, calls[last].depth >= entry.depth { open.removeLast() }
                open.append(calls.count)
                calls.append(
                    Call(
                        handler: handler, mode: mode, begin: entry.time, depth: entry.depth, lateness: entry.lateness))
            case .callEnded(let duration):
                guard let last = open.last, calls[last].depth == entry.depth else { continue }
                open.removeLast()
                calls[last].duration = duration
                if let outer = open.last { calls[outer].nested += duration }
            case .slept(let duration):
                if let innermost = open.last { calls[innermost].nested += duration }
            case .runBegan, .runEnded: continue
            }
        }
        return calls
    }

    /// A call of a timer that came late, and the calls that were under way after its date.
    public struct Delay: Sendable, Hashable {
        /// The late call.
        public let call: Call
        /// The calls that were made or still under way between its date and its begin, at most the 20 longest, the longest
        /// first. Calls that others are nested in are among them. If there are none, the loop ran in other modes, or its
        /// thread had no processor.
        public let causes: [Call]
    }

    /// The calls of timers that came late, the latest first. O(calls × `count`).
    ///
    /// - Parameters:
    ///   - threshold: the least lateness that counts.
    ///   - count: the most calls that are asked for. A loop that is overloaded has thousands of them, each in the way of
    ///     those after it.
    public func delays(of threshold: Duration, atMost count: Int = 20) -> [Delay] {
        let calls = calls
        let late = calls.indices.filter { calls[$0].lateness.map { $0 >= threshold && $0 > .zero } ?? false }
        let latest = late.sorted { (calls[$0].lateness!, $1) > (calls[$1].lateness!, $0) }.prefix(max(0, count))
        return latest.map { index in
            let call = calls[index]
            let date = call.begin - call.lateness!
            var causes: [Call] = []
            for earlier in calls[..<index].reversed() {
                let end = earlier.duration.map { earlier.begin + $0 } ?? .distantFuture
                if end > date { causes.append(earlier) }
                // Those before it had ended, too.
                if earlier.depth == 0, end <= date { break }
            }
            causes.sort { ($0.duration ?? .zero) > ($1.duration ?? .zero) }
            return Delay(call: call, causes: Array(causes.prefix(20)))
        }
    }

    /// The calls that were under way when the flight ended, the innermost last: of a process that has ended, those in which
    /// it did.
    public var unfinished: [Call] {
        var open: [Call] = []
        for call in calls where call.duration == nil {
            while let last = open.last, last.depth >= call.depth { open.removeLast() }
            open.append(call)
        }
        return open
    }
}
