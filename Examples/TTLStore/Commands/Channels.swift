/// Who hears of which channel.
final class Channels {
    /// Gives a client a message outside of its requests; set by whoever knows the connections.
    var send: (Session, Reply) -> Void = { _, _ in }

    private var listeners: [[UInt8]: [ObjectIdentifier: Session]] = [:]
    private var patterns: [[UInt8]: (glob: Glob, listeners: [ObjectIdentifier: Session])] = [:]

    var channelCount: Int { listeners.count }
    var patternCount: Int { patterns.count }

    func subscribe(_ session: Session, to channel: [UInt8]) {
        session.channels.insert(channel)
        listeners[channel, default: [:]][ObjectIdentifier(session)] = session
    }

    func unsubscribe(_ session: Session, from channel: [UInt8]) {
        session.channels.remove(channel)
        listeners[channel]?[ObjectIdentifier(session)] = nil
        if listeners[channel]?.isEmpty == true { listeners[channel] = nil }
    }

    func subscribe(_ session: Session, toPattern pattern: [UInt8]) {
        session.patterns.insert(pattern)
        patterns[pattern, default: (Glob(pattern), [:])].listeners[ObjectIdentifier(session)] = session
    }

    func unsubscribe(_ session: Session, fromPattern pattern: [UInt8]) {
        session.patterns.remove(pattern)
        patterns[pattern]?.listeners[ObjectIdentifier(session)] = nil
        if patterns[pattern]?.listeners.isEmpty == true { patterns[pattern] = nil }
    }

    /// Forgets a client.
    func remove(_ session: Session) {
        for channel in session.channels { unsubscribe(session, from: channel) }
        for pattern in session.patterns { unsubscribe(session, fromPattern: pattern) }
    }

    /// Tells those who listen that a key has expired, as Redis does.
    func tell(ofExpired key: Key) {
        guard !listeners.isEmpty || !patterns.isEmpty else { return }
        publish(Array("__keyspace@0__:".utf8) + key.bytes, Array("expired".utf8))
        publish(Array("__keyevent@0__:expired".utf8), key.bytes)
    }

    private func publish(_ channel: [UInt8], _ message: [UInt8]) {
        for session in listeners[channel, default: [:]].values { send(session, "message", [channel, message]) }
        for (pattern, (glob, listeners)) in patterns where glob.matches(channel) {
            for session in listeners.values { send(session, "pmessage", [pattern, channel, message]) }
        }
    }

    private func send(_ session: Session, _ kind: String, _ parts: [[UInt8]]) {
        var reply = Reply()
        reply.version = session.version
        reply.push(count: 1 + parts.count)
        reply.bulk(kind)
        for part in parts { reply.bulk(part) }
        // With a pattern and a key that are both huge.
        guard !reply.isFull else { return }
        send(session, reply)
    }
}
