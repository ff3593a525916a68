import RunLoopKit

/// Performs requests.
final class Commands {
    let store: Store
    let settings: Settings
    let channels: Channels
    /// The sections of INFO that other objects provide.
    var information: () -> [Information] = { [] }
    /// The entries of CONFIG GET besides the ones defined here.
    var configuration: [String: String] = [:]
    /// The reason why nothing can be written or changed at present.
    @exclusivity(unchecked) var writeError: String?

    struct Settings {
        /// The number of bytes that keys and values may take; 0 for no limit.
        var maximumMemory = 0
        var eviction = Store.Eviction.none
        /// The number of loops that perform requests.
        var loops = 1
        /// The largest size of a value.
        var maximumValue = RequestParser.Limits().argumentSize
    }

    /// A section of INFO.
    typealias Information = (name: String, lines: [(String, String)])

    init(store: Store, channels: Channels, settings: Settings = Settings()) {
        self.store = store
        self.channels = channels
        self.settings = settings
    }

    var clock: WallClock { store.clock }

    private static let table = CommandTable(
        strings + numbers + expiry + keys + server + subscribing)
    // Not through the accessor of a global variable, which checks its initialization on each access.
    private let table = Commands.table

    /// Performs requests until none is complete, or until the replies have reached `mark` bytes.
    ///
    /// - Returns: the number of bytes used, the number of requests, and the reason for stopping.
    func perform(
        all bytes: UnsafeBufferPointer<UInt8>, _ parser: inout RequestParser, _ session: Session, _ reply: inout Reply,
        mark: Int = .max
    ) -> Batch {
        var batch = Batch()
        reply.version = session.version
        while true {
            guard reply.count < mark else {
                batch.end = .mark
                return batch
            }
            switch parser.parse(bytes, from: batch.used) {
            case .incomplete: return batch
            case .malformed(let text):
                reply.error("ERR \(text)")
                reply.end()
                (batch.used, batch.end) = (bytes.count, .last)
                return batch
            case .request(let end):
                let start = batch.used
                batch.used = end
                guard parser.count > 0 else { continue }
                batch.requests += 1
                perform(parser, UnsafeBufferPointer(rebasing: bytes[start..<end]), session, &reply)
                reply.end()
                guard !session.isOver else {
                    (batch.used, batch.end) = (bytes.count, .last)
                    return batch
                }
            }
        }
    }

    struct Batch {
        enum End {
            /// The remaining input is not a complete request.
            case incomplete
            /// Enough replies have collected; the remaining input may have more requests.
            case mark
            /// The client has had its last reply.
            case last
        }

        var used = 0
        var requests = 0
        var end = End.incomplete
    }

    /// Performs the request that the parser has found.
    @inline(__always)
    private func perform(
        _ parser: RequestParser, _ bytes: UnsafeBufferPointer<UInt8>, _ session: Session, _ reply: inout Reply
    ) {
        guard let unquoted = parser.unquoted else {
            return perform(Request(bytes: bytes, words: parser.words, count: parser.count), session, &reply)
        }
        unquoted.withUnsafeBufferPointer {
            perform(Request(bytes: $0, words: parser.words, count: parser.count), session, &reply)
        }
    }

    private func perform(_ request: Request, _ session: Session, _ reply: inout Reply) {
        guard let command = table[request.name(0)] else { return unknown(request, session, &reply) }
        guard request.count >= command.leastCount, request.count <= command.mostCount else {
            return refuseCount(request, &reply)
        }
        if session.onlyListens, !command.traits.contains(.whileListening) {
            return reply.error(
                "ERR Can't execute '\(request.text(0).lowercased())': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
                    + "QUIT / RESET are allowed in this context")
        }
        if command.traits.contains(.writes) {
            if let writeError {
                return reply.error("MISCONF Errors writing to the append-only log: \(writeError)")
            }
            // A change is performed only if there is room afterwards, as far as is known before.
            if settings.maximumMemory > 0, command.traits.contains(.grows),
                !store.evict(downTo: settings.maximumMemory, settings.eviction)
            {
                return reply.error("OOM command not allowed when used memory > 'maxmemory'.")
            }
        }
        switch command.keys {
        case .none: command.body(self, request, session, &reply)
        case .first:
            store.withLock(ofPart: request.part(1)) { command.body(self, request, session, &reply) }
        case .each, .everySecond:
            var parts = Table.Parts()
            for index in stride(from: 1, to: request.count, by: command.keys == .each ? 1 : 2) {
                parts.insert(request.part(index))
            }
            store.withLocks(of: parts) { command.body(self, request, session, &reply) }
        case .all: store.withLocks(of: .all) { command.body(self, request, session, &reply) }
        }
    }

    private func unknown(_ request: Request, _ session: Session, _ reply: inout Reply) {
        // A browser that was lured into sending a form here must not get any further.
        switch request.name(0) {
        case "POST", "HOST:":
            session.isOver = true
            return
        default: break
        }
        var arguments: [UInt8] = []
        for index in 1..<max(1, request.count) where arguments.count < 128 {
            arguments += [UInt8(ascii: "'")] + request.quoted(index, 128 - arguments.count) + "' ".utf8
        }
        reply.error(
            Array("ERR unknown command '".utf8) + request.quoted(0) + "', with args beginning with: ".utf8 + arguments)
    }

    /// Replies that a command has too many words or too few.
    func refuseCount(_ request: Request, _ reply: inout Reply) {
        reply.error("ERR wrong number of arguments for '\(request.text(0).lowercased())' command")
    }

    static let notAnInteger = "ERR value is not an integer or out of range"
    static let syntaxError = "ERR syntax error"
}
