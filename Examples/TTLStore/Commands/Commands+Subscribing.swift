// Notices of keys that have expired.

extension Commands {
    static let subscribing: [Command] = [
        Command("SUBSCRIBE", 2..., .none, .whileListening) { commands, request, session, reply in
            for index in 1..<request.count {
                let channel = request.value(index)
                commands.channels.subscribe(session, to: channel)
                commands.confirm("subscribe", channel, session, &reply)
            }
        },
        Command("PSUBSCRIBE", 2..., .none, .whileListening) { commands, request, session, reply in
            for index in 1..<request.count {
                let pattern = request.value(index)
                commands.channels.subscribe(session, toPattern: pattern)
                commands.confirm("psubscribe", pattern, session, &reply)
            }
        },
        Command("UNSUBSCRIBE", 1..., .none, .whileListening) { commands, request, session, reply in
            let all = request.count == 1 ? Array(session.channels) : (1..<request.count).map(request.value)
            for channel in all {
                commands.channels.unsubscribe(session, from: channel)
                commands.confirm("unsubscribe", channel, session, &reply)
            }
            if all.isEmpty { commands.confirm("unsubscribe", nil, session, &reply) }
        },
        Command("PUNSUBSCRIBE", 1..., .none, .whileListening) { commands, request, session, reply in
            let all = request.count == 1 ? Array(session.patterns) : (1..<request.count).map(request.value)
            for pattern in all {
                commands.channels.unsubscribe(session, fromPattern: pattern)
                commands.confirm("punsubscribe", pattern, session, &reply)
            }
            if all.isEmpty { commands.confirm("punsubscribe", nil, session, &reply) }
        },
    ]

    private func confirm(_ kind: String, _ channel: [UInt8]?, _ session: Session, _ reply: inout Reply) {
        reply.push(count: 3)
        reply.bulk(kind)
        if let channel { reply.bulk(channel) } else { reply.null() }
        reply.integer(session.subscriptions)
    }
}
