// Values that are numbers.

extension Commands {
    static let numbers: [Command] = [
        Command("INCR", 2...2, .first, [.writes, .grows]) { $0.add(1, $1, &$3) },
        Command("DECR", 2...2, .first, [.writes, .grows]) { $0.add(-1, $1, &$3) },
        Command("INCRBY", 3...3, .first, [.writes, .grows]) { commands, request, _, reply in
            guard let number = request.integer(2) else { return reply.error(Commands.notAnInteger) }
            commands.add(number, request, &reply)
        },
        Command("DECRBY", 3...3, .first, [.writes, .grows]) { commands, request, _, reply in
            guard let number = request.integer(2) else { return reply.error(Commands.notAnInteger) }
            guard number != .min else { return reply.error("ERR decrement would overflow") }
            commands.add(-number, request, &reply)
        },
        Command("INCRBYFLOAT", 3...3, .first, [.writes, .grows]) { $0.addFloat($1, &$3) },
    ]

    private func add(_ number: Int, _ request: Request, _ reply: inout Reply) {
        let key = request.key(1)
        let old = store.value(of: key) ?? [UInt8(ascii: "0")]
        guard let value = old.withUnsafeBufferPointer({ Int(wholeNumber: $0) }) else {
            return reply.error(Commands.notAnInteger)
        }
        let (sum, overflow) = value.addingReportingOverflow(number)
        guard !overflow else { return reply.error("ERR increment or decrement would overflow") }
        store.changeValue(of: key) { $0 = Array(String(sum).utf8) }
        reply.integer(sum)
    }

    private func addFloat(_ request: Request, _ reply: inout Reply) {
        let key = request.key(1)
        let old = store.value(of: key) ?? [UInt8(ascii: "0")]
        guard let value = old.withUnsafeBufferPointer({ Double(number: $0) }), let number = Double(number: request[2])
        else { return reply.error("ERR value is not a valid float") }
        guard (value + number).isFinite else { return reply.error("ERR increment would produce NaN or Infinity") }
        let sum = (value + number).decimals
        store.changeValue(of: key) { $0 = Array(sum.utf8) }
        reply.bulk(sum)
    }
}
