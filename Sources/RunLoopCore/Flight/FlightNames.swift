/// The names in the memory of a flight, each with a number. On the loop's thread.
struct FlightNames {
    private struct Key: Hashable {
        let kind: UInt8
        let origin: UInt64
        let name: String?
    }

    private struct Recent {
        var origin: UInt64 = 0
        var words: (UInt64, UInt64) = (0, 0)
        var kind: UInt8 = .max
        var number: UInt32 = 0
        /// The owner of the memory to which the words refer.
        var name: String?
    }

    /// The codes of threads and of modes. The codes of calls are the indices of their kinds.
    static let thread: UInt8 = 253
    static let mode: UInt8 = 254
    /// The code of the name that replaces names for which there is no room.
    static let other: UInt8 = 255

    private let memory: FlightMemory
    private var numbers: [Key: UInt32] = [:]
    /// The names used last, by a part of their hash: most calls find theirs without hashing a string.
    private var recent = [Recent](repeating: Recent(), count: 256)
    /// The name used last. All connections of a listener have the same.
    private var last = Recent()
    private var modes: [UInt16] = []
    /// The mode used last; most calls are in it.
    private var recentMode: (id: Int, number: UInt16) = (-1, 0)
    private var threads: [ThreadName: UInt32] = [:]

    init(_ memory: FlightMemory) {
        self.memory = memory
        _ = add(Key(kind: Self.other, origin: 0, name: nil), file: "", line: 0)
    }

    @inline(__always)
    mutating func number(of callee: RunLoop.Callee) -> UInt32 {
        // Unsafe: strings with the same two words are equal. Comparing them as strings took four times as long, because
        // they were retained.
        let words = unsafeBitCast(callee.name, to: (UInt64, UInt64).self)
        if last.origin == callee.origin.bits, last.words == words, last.kind == callee.kind.code { return last.number }
        return findRecent(callee)
    }

    @inline(never)
    private mutating func findRecent(_ callee: RunLoop.Callee) -> UInt32 {
        let (code, bits) = (callee.kind.code, callee.origin.bits)
        // A task that belongs to no loop is recorded without its name, which is its number.
        let name = callee.kind == .executor ? nil : callee.name
        let words = unsafeBitCast(name, to: (UInt64, UInt64).self)
        let hash = bits ^ bits >> 48 &* 31 ^ words.0 ^ words.1 >> 4 ^ UInt64(code) << 3
        let place = Int(truncatingIfNeeded: hash & 255)
        let isKnown = recent.withUnsafeBufferPointer { recent in
            recent[place].origin == bits && recent[place].words == words && recent[place].kind == code
        }
        if !isKnown { find(callee, code, name, words, place) }
        if callee.kind != .executor { last = recent[place] }
        return recent[place].number
    }

    @inline(never)
    private mutating func find(
        _ callee: RunLoop.Callee, _ code: UInt8, _ name: String?, _ words: (UInt64, UInt64), _ place: Int
    ) {
        let bits = callee.origin.bits
        let number = find(Key(kind: code, origin: bits, name: name), callee.origin)
        recent[place] = Recent(origin: bits, words: words, kind: code, number: number, name: name)
    }

    private mutating func find(_ key: Key, _ origin: RunLoop.Origin) -> UInt32 {
        if let number = numbers[key] { return number }
        if let number = add(key, file: origin.file, line: origin.line) { return number }
        // A program may make any number of names at run time; the line says most.
        guard key.name != nil else { return 0 }
        return find(Key(kind: key.kind, origin: key.origin, name: nil), origin)
    }

    @inline(__always)
    mutating func number(of mode: RunLoop.Mode) -> UInt16 {
        if mode.id != recentMode.id { recentMode = (mode.id, find(mode)) }
        return recentMode.number
    }

    @inline(never)
    private mutating func find(_ mode: RunLoop.Mode) -> UInt16 {
        if mode.id < modes.count, modes[mode.id] != 0 { return modes[mode.id] }
        let number = add(Key(kind: Self.mode, origin: UInt64(mode.id), name: mode.name), file: "", line: 0) ?? 0
        while modes.count <= mode.id { modes.append(0) }
        modes[mode.id] = UInt16(clamping: number)
        return modes[mode.id]
    }

    mutating func number(of thread: ThreadName) -> UInt32 {
        if let number = threads[thread] { return number }
        // The number of threads' names is not limited either.
        guard threads.count < 1024 else { return 0 }
        let number = add(Key(kind: Self.thread, origin: 0, name: "\(thread)"), file: "", line: 0) ?? 0
        threads[thread] = number
        return number
    }

    /// - Returns: the number of the name; `nil` if there is no room for it.
    private mutating func add(_ key: Key, file: String, line: UInt32) -> UInt32? {
        let (name, file) = (Array((key.name ?? "").utf8.prefix(512)), Array(file.utf8.prefix(512)))
        var bytes: [UInt8] = [key.kind, key.name == nil ? 0 : 1]
        for number in [name.count, file.count, Int(line)] {
            bytes += [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
        }
        bytes += name + file
        while bytes.count % 8 != 0 { bytes.append(0) }
        let used = Int(memory[.namesUsed])
        // A part is reserved for the names of lines, which have no text.
        let room = key.name == nil || key.kind == Self.mode ? memory.nameBytes : memory.nameBytes / 4 * 3
        guard used + bytes.count <= room else { return nil }
        memory.write(bytes, at: FlightMemory.pageSize + used)
        memory[.namesUsed] = UInt64(used + bytes.count)
        assert(numbers[key] == nil && bytes.count % 8 == 0, "a name is written twice, or not in words")
        let number = UInt32(numbers.count)
        numbers[key] = number
        return number
    }
}

extension RunLoop.ItemKind {
    /// Indicates whether the item fires at a date.
    @inline(__always)
    var hasDate: Bool {
        switch self {
        case .timer, .wallTimer, .delayedCall, .timerSource, .displayLink, .sleep: true
        default: false
        }
    }

    /// Indicates whether a call of the item is a poll of a task.
    @inline(__always)
    var isOfTasks: Bool {
        switch self {
        case .task, .executor: true
        default: false
        }
    }

    /// The number of the kind in a flight: its index among all kinds.
    // Unsafe: the compiler numbers the cases so, which a test checks. Searching the list took 150 of the 2,150
    // instructions of a timer's fire.
    var code: UInt8 { unsafeBitCast(self, to: UInt8.self) }
}
