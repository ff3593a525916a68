import Glibc
import RunLoopKit

// The server and its clients.

extension Commands {
    static let server: [Command] = [
        Command("PING", 1...2, .none, .whileListening) { $0.ping($1, $2, &$3) },
        Command("ECHO", 2...2) { $3.bulk($1[1]) },
        Command("HELLO", 1...) { $0.hello($1, $2, &$3) },
        Command("CLIENT", 2...) { $0.client($1, $2, &$3) },
        Command("SELECT", 2...2) { $0.select($1, &$3) },
        Command("INFO", 1..., .all) { $0.info($1, &$3) },
        Command("CONFIG", 2...) { $0.config($1, &$3) },
        Command("COMMAND", 1...) { $3.array(count: 0) },
        Command("TIME", 1...1) { commands, _, _, reply in
            let microseconds = commands.clock.read() / 1000
            reply.array(count: 2)
            reply.bulk("\(microseconds / 1_000_000)")
            reply.bulk("\(microseconds % 1_000_000)")
        },
        Command("RESET", 1...1, .none, .whileListening) { commands, _, session, reply in
            commands.channels.remove(session)
            (session.version, reply.version, session.name) = (2, 2, [])
            reply.simple("RESET")
        },
        Command("QUIT", 1..., .none, .whileListening) {
            $2.isOver = true; $3.ok()
        },
    ]

    private func ping(_ request: Request, _ session: Session, _ reply: inout Reply) {
        guard session.onlyListens else {
            if request.count == 2 { reply.bulk(request[1]) } else { reply.pong() }
            return
        }
        reply.array(count: 2)
        reply.bulk("pong")
        if request.count == 2 { reply.bulk(request[1]) } else { reply.bulk("") }
    }

    /// Chooses the version of the protocol.
    private func hello(_ request: Request, _ session: Session, _ reply: inout Reply) {
        var version = session.version
        var name: [UInt8]?
        if request.count > 1 {
            guard let number = request.integer(1) else {
                return reply.error("ERR Protocol version is not an integer or out of range")
            }
            guard (2...3).contains(number) else { return reply.error("NOPROTO unsupported protocol version") }
            version = number
        }
        var index = 2
        while index < request.count {
            switch request.name(index) {
            case "AUTH" where index + 2 < request.count: return reply.error(Commands.noPasswords)
            case "SETNAME" where index + 1 < request.count:
                guard let valid = validName(request, index + 1, "Client names", &reply) else { return }
                name = valid
                index += 2
            default:
                return reply.error(Array("ERR Syntax error in HELLO option '".utf8) + request.quoted(index) + "'".utf8)
            }
        }
        if let name { session.name = name }
        (session.version, reply.version) = (version, version)
        reply.map(count: 7)
        for (field, text) in [("server", "ttlstore"), ("version", Commands.versionOfRedis)] {
            reply.bulk(field)
            reply.bulk(text)
        }
        for (field, number) in [("proto", version), ("id", session.number)] {
            reply.bulk(field)
            reply.integer(number)
        }
        for (field, text) in [("mode", "standalone"), ("role", "master")] {
            reply.bulk(field)
            reply.bulk(text)
        }
        reply.bulk("modules")
        reply.array(count: 0)
    }

    private static let noPasswords =
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
        + "configuration is correct?"
    /// The version of redis-server whose replies these are.
    static let versionOfRedis = "7.0.15"

    private func client(_ request: Request, _ session: Session, _ reply: inout Reply) {
        switch (request.name(1), request.count) {
        case ("ID", 2): reply.integer(session.number)
        case ("GETNAME", 2): if session.name.isEmpty { reply.null() } else { reply.bulk(session.name) }
        case ("SETNAME", 3):
            guard let name = validName(request, 2, "Client names", &reply) else { return }
            session.name = name
            reply.ok()
        case ("SETINFO", 4): setInformation(request, &reply)
        case ("ID", _), ("GETNAME", _), ("SETNAME", _), ("SETINFO", _):
            reply.error("ERR wrong number of arguments for 'client|\(request.text(1).lowercased())' command")
        default: unknownSubcommand(request, "CLIENT", &reply)
        }
    }

    /// Accepts and ignores the client's library, which clients send unasked.
    private func setInformation(_ request: Request, _ reply: inout Reply) {
        let attribute = request.text(2).lowercased()
        guard attribute == "lib-name" || attribute == "lib-ver" else {
            return reply.error(Array("ERR Unrecognized option '".utf8) + request.quoted(2) + "'".utf8)
        }
        if validName(request, 3, attribute, &reply) != nil { reply.ok() }
    }

    private func validName(_ request: Request, _ index: Int, _ what: String, _ reply: inout Reply) -> [UInt8]? {
        guard request[index].allSatisfy({ (0x21...0x7E).contains($0) }) else {
            reply.error("ERR \(what) cannot contain spaces, newlines or special characters.")
            return nil
        }
        return request.value(index)
    }

    private func unknownSubcommand(_ request: Request, _ command: String, _ reply: inout Reply) {
        reply.error(
            Array("ERR unknown subcommand '".utf8) + request.quoted(1) + "'. Try \(command) HELP.".utf8)
    }

    /// Selects a database, of which there is one.
    private func select(_ request: Request, _ reply: inout Reply) {
        guard let number = request.integer(1) else { return reply.error(Commands.notAnInteger) }
        if number == 0 { reply.ok() } else { reply.error("ERR DB index is out of range") }
    }

    /// Replies with all sections, or only the requested ones.
    private func info(_ request: Request, _ reply: inout Reply) {
        let table = store.table
        let sections =
            information() + [
                (
                    "Memory",
                    [
                        ("used_memory", "\(table.usedMemory)"), ("maxmemory", "\(settings.maximumMemory)"),
                        ("maxmemory_policy", settings.eviction.rawValue),
                    ]
                ),
                (
                    "Stats",
                    [
                        ("expired_keys", "\(table.expired)"), ("evicted_keys", "\(table.evicted)"),
                        ("latest_expiry_us", "\(Int(table.latestExpiry / .microseconds(1)))"),
                        ("pubsub_channels", "\(channels.channelCount)"),
                        ("pubsub_patterns", "\(channels.patternCount)"),
                    ]
                ),
                (
                    "Keyspace",
                    table.count == 0 ? [] : [("db0", "keys=\(table.count),expires=\(table.countWithExpiry)")]
                ),
            ]
        let names = Set((1..<request.count).map { request.text($0).lowercased() })
        let isWhole = names.isEmpty || !names.isDisjoint(with: ["all", "default", "everything"])
        var order: [String] = []
        var texts: [String: String] = [:]
        for (name, lines) in sections where isWhole || names.contains(name.lowercased()) {
            if texts[name] == nil { order.append(name) }
            texts[name, default: "# \(name)\r\n"] += lines.map { "\($0):\($1)\r\n" }.joined()
        }
        let text = order.map { texts[$0]! }.joined(separator: "\r\n")
        reply.verbatim(text)
    }

    private func config(_ request: Request, _ reply: inout Reply) {
        guard case "GET" = request.name(1) else { return unknownSubcommand(request, "CONFIG", &reply) }
        guard request.count > 2 else { return reply.error("ERR wrong number of arguments for 'config|get' command") }
        var values = [
            "save": "", "appendonly": "no", "io-threads": "\(settings.loops)", "maxmemory": "\(settings.maximumMemory)",
            "maxmemory-policy": settings.eviction.rawValue, "notify-keyspace-events": "KEx",
        ]
        values.merge(configuration) { $1 }
        var found: [(String, String)] = []
        for index in 2..<request.count {
            let name = request.text(index)
            if let value = values.removeValue(forKey: name.lowercased()) {
                found.append((name, value))
            } else if name.contains(where: { "*?[".contains($0) }) {
                let glob = Glob(Array(name.lowercased().utf8))
                for (name, value) in values.sorted(by: { $0.key < $1.key }) where glob.matches(Array(name.utf8)) {
                    values[name] = nil
                    found.append((name, value))
                }
            }
        }
        reply.map(count: found.count)
        for (name, value) in found {
            reply.bulk(name)
            reply.bulk(value)
        }
    }
}
