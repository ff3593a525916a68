internal import Glibc

extension Flight {
    /// Reads the file of a recorder, also while it records, and after its process has ended in any way. O(size).
    ///
    /// - Throws: ``FlightError`` if the file cannot be read, or is no flight.
    public init(contentsOf path: String) throws(FlightError) {
        guard let file = fopen(path, "r") else { throw .file(path, errno: errno) }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 20)
        while case let count = fread(&part, 1, part.count, file), count > 0 { bytes += part[..<count] }
        guard ferror(file) == 0 else { throw .file(path, errno: errno) }
        try self.init(bytes, written: nil, from: 0)
    }

    /// - Parameters:
    ///   - written: the number of events written by the end of the copy; `nil` if the bytes do not change.
    ///   - start: the number of the first event to read.
    init(_ bytes: [UInt8], written: UInt64?, from start: Int) throws(FlightError) {
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
        // The event after the last one counted when the copy ended may have been half overwritten.
        let overwritten = written.map { Int(clamping: $0) + 1 - events } ?? end - events
        let first = min(end, max(start, overwritten))
        lost = first
        let ring = FlightMemory.pageSize + nameBytes
        entries = (first..<end).compactMap { number in
            let place = ring + number % events * FlightMemory.eventSize
            let event = FlightEvent(words: (word(place), word(place + 8), word(place + 16)))
            return names.entry(event)
        }
    }

    /// The names of a flight, by their numbers.
    private struct Names {
        private typealias Name = (handler: Handler?, mode: String?, thread: String?)

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
                let kinds = RunLoop.ItemKind.allCases
                var entry: Name = (nil, nil, nil)
                if kind == FlightNames.mode {
                    entry.mode = name
                } else if kind == FlightNames.thread {
                    entry.thread = name
                } else if kind < kinds.count {
                    entry.handler = Handler(
                        kind: kinds[Int(kind)], name: hasName ? name : nil, origin: "\(file):\(line)")
                }
                names.append(entry)
                rest = rest.dropFirst(length)
            }
        }

        private subscript(number: Int) -> Name { number < names.count ? names[number] : (nil, nil, nil) }

        func entry(_ event: FlightEvent) -> Entry? {
            guard let what = what(event) else { return nil }
            var (lateness, task): (Duration?, UInt64?)
            if case .callBegan(let handler, _) = what {
                if handler?.kind.isOfTasks == true {
                    task = UInt64(bitPattern: event.value)
                } else if handler?.kind.hasDate == true, event.value != FlightEvent.noLateness {
                    lateness = .nanoseconds(event.value)
                }
            }
            return Entry(time: event.time, depth: event.depth, event: what, lateness: lateness, task: task)
        }

        private func what(_ event: FlightEvent) -> Event? {
            let (name, mode) = (self[event.name], self[event.mode].mode ?? "another mode")
            return switch event.kind {
            case .runBegan: .runBegan(mode: mode)
            case .runEnded: .runEnded(mode: mode)
            case .callBegan: .callBegan(name.handler, mode: mode)
            case .callHas: .callHas(number: UInt64(bitPattern: event.value), thread: name.thread)
            case .callEnded: .callEnded(duration: .nanoseconds(event.value))
            case .slept: .slept(.nanoseconds(event.value), by: .other)
            case .sleptUntilDate: .slept(.nanoseconds(event.value), by: .date)
            case .sleptUntilReady: .slept(.nanoseconds(event.value), by: .source(name.handler))
            case .sleptUntilMail: .slept(.nanoseconds(event.value), by: .thread(name.thread ?? "without a name"))
            case .caused: .caused(name.handler, number: UInt64(bitPattern: event.value))
            case .moved:
                .moved(name.handler, descriptor: Int32(event.mode), received: event.received, sent: event.sent)
            case nil: nil
            }
        }
    }
}
