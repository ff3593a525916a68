/// A command: its name, its number of words, and its effect.
final class Command: Sendable {
    struct Traits: OptionSet, Sendable {
        let rawValue: Int
        /// The command changes keys.
        static let writes = Traits(rawValue: 1)
        /// The command may need more memory.
        static let grows = Traits(rawValue: 2)
        /// A subscribed client may give the command.
        static let whileListening = Traits(rawValue: 4)
    }

    /// The words that are keys. They are locked while the command is performed, so that no client sees it half done.
    enum Keys: Sendable {
        /// No word, or the command takes its own locks.
        case none
        case first
        /// All words after the name.
        case each
        /// Keys and values alternate.
        case everySecond
        /// Every existing key.
        case all
    }

    typealias Body = @Sendable (Commands, Request, Session, inout Reply) -> Void

    /// The name in the form compared with requests, and its spelling.
    let name: Name
    let spelling: StaticString
    let leastCount: Int
    let mostCount: Int
    let keys: Keys
    let traits: Traits
    let body: Body

    init(
        _ spelling: StaticString, _ counts: ClosedRange<Int>, _ keys: Keys = .none, _ traits: Traits = [],
        _ body: @escaping Body
    ) {
        name = Name(UnsafeBufferPointer(start: spelling.utf8Start, count: spelling.utf8CodeUnitCount))
        self.spelling = spelling
        leastCount = counts.lowerBound
        mostCount = counts.upperBound
        self.keys = keys
        self.traits = traits
        self.body = body
    }

    convenience init(
        _ name: StaticString, _ counts: PartialRangeFrom<Int>, _ keys: Keys = .none, _ traits: Traits = [],
        _ body: @escaping Body
    ) {
        self.init(name, counts.lowerBound...Int.max, keys, traits, body)
    }
}

/// All commands, found by their names with a few instructions.
struct CommandTable: Sendable {
    // A hash table with open addressing, twice as large as it needs to be.
    private var commands = [Command?](repeating: nil, count: 256)

    init(_ all: [Command]) {
        precondition(all.count <= commands.count / 2, "the table is too small for \(all.count) commands")
        for command in all {
            var index = CommandTable.start(of: command.name)
            while commands[index] != nil { index = (index + 1) % 256 }
            commands[index] = command
        }
    }

    @inline(__always)
    private static func start(of name: Name) -> Int {
        Int(truncatingIfNeeded: ((name.head ^ name.tail) &* 0x9E37_79B9_7F4A_7C15) >> 56)
    }

    @inline(__always)
    subscript(name: Name) -> Command? {
        var index = CommandTable.start(of: name)
        while let command = commands[index] {
            if command.name == name { return command }
            index = (index + 1) & 255
        }
        return nil
    }
}
