import RunLoopKit

/// The subscriptions of a loop's clients to channels.
final class Channels {
    /// Sends a message outside of a client's requests; set by the owner of the connections.
    var send: (Session, Reply) -> Void = { _, _ in }

    private var listeners: [[UInt8]: [Int: Session]] = [:]
    private var patterns: [[UInt8]: (glob: Glob, listeners: [Int: Session])] = [:]

    private let audience: Audience

    init(_ audience: Audience = Audience(), on loop: RunLoop) {
        self.audience = audience
        audience.add(self, on: loop)
    }

    /// The numbers of channels and patterns with subscribers, on any loop.
    var channelCount: Int { audience.channelCount }
    var patternCount: Int { audience.patternCount }

    func subscribe(_ session: Session, to channel: [UInt8]) {
        session.channels.insert(channel)
        if listeners[channel] == nil { audience.begin(channel) }
        listeners[channel, default: [:]][session.number] = session
    }

    func unsubscribe(_ session: Session, from channel: [UInt8]) {
        session.channels.remove(channel)
        guard listeners[channel]?.removeValue(forKey: session.number) != nil else { return }
        guard listeners[channel]?.isEmpty == true else { return }
        listeners[channel] = nil
        audience.end(channel)
    }

    func subscribe(_ session: Session, toPattern pattern: [UInt8]) {
        session.patterns.insert(pattern)
        if patterns[pattern] == nil { audience.begin(pattern: pattern) }
        patterns[pattern, default: (Glob(pattern), [:])].listeners[session.number] = session
    }

    func unsubscribe(_ session: Session, fromPattern pattern: [UInt8]) {
        session.patterns.remove(pattern)
        guard patterns[pattern]?.listeners.removeValue(forKey: session.number) != nil else { return }
        guard patterns[pattern]?.listeners.isEmpty == true else { return }
        patterns[pattern] = nil
        audience.end(pattern: pattern)
    }

    /// Forgets a client.
    func remove(_ session: Session) {
        for channel in session.channels { unsubscribe(session, from: channel) }
        for pattern in session.patterns { unsubscribe(session, fromPattern: pattern) }
    }

    /// Notifies the subscribers on all loops that a key has expired.
    func tellAll(ofExpired key: Key) {
        tell(ofExpired: key)
        audience.tell(ofExpired: key)
    }

    /// Notifies the subscribers on this loop that a key has expired, as Redis does.
    fileprivate func tell(ofExpired key: Key) {
        guard !listeners.isEmpty || !patterns.isEmpty else { return }
        publish(Array("__keyspace@0__:".utf8) + key.bytes, Array("expired".utf8))
        publish(Array("__keyevent@0__:expired".utf8), key.bytes)
    }

    private func publish(_ channel: [UInt8], _ message: [UInt8]) {
        for (_, session) in listeners[channel, default: [:]].sorted(by: { $0.key < $1.key }) {
            send(session, "message", [channel, message])
        }
        for (pattern, (glob, listeners)) in patterns where glob.matches(channel) {
            for (_, session) in listeners.sorted(by: { $0.key < $1.key }) {
                send(session, "pmessage", [pattern, channel, message])
            }
        }
    }

    private func send(_ session: Session, _ kind: String, _ parts: [[UInt8]]) {
        var reply = Reply()
        reply.version = session.version
        reply.push(count: 1 + parts.count)
        reply.bulk(kind)
        for part in parts { reply.bulk(part) }
        // Possible with a pattern and a key that are both huge.
        guard !reply.isFull else { return }
        send(session, reply)
    }
}

/// The subscribed channels of all loops. Any thread.
final class Audience: Sendable {
    private struct State {
        var members: [LoopBound<Member>] = []
        /// The number of loops with subscribers, by channel.
        var channels: [[UInt8]: Int] = [:]
        var patterns: [[UInt8]: Int] = [:]
    }

    private struct Member {
        weak var channels: Channels?
    }

    private let state = Shared(State())

    /// Adds a loop's channels. Called on the loop's thread.
    fileprivate func add(_ channels: Channels, on loop: RunLoop) {
        let member = LoopBound(Member(channels: channels), loop: loop)
        state.withLock { $0.members.append(member) }
    }

    var channelCount: Int { state.withLock { $0.channels.count } }
    var patternCount: Int { state.withLock { $0.patterns.count } }

    fileprivate func begin(_ channel: [UInt8]) {
        state.withLock { $0.channels[channel, default: 0] += 1 }
    }

    fileprivate func end(_ channel: [UInt8]) {
        state.withLock { Self.decrease(&$0.channels, channel) }
    }

    fileprivate func begin(pattern: [UInt8]) {
        state.withLock { $0.patterns[pattern, default: 0] += 1 }
    }

    fileprivate func end(pattern: [UInt8]) {
        state.withLock { Self.decrease(&$0.patterns, pattern) }
    }

    private static func decrease(_ counts: inout [[UInt8]: Int], _ name: [UInt8]) {
        counts[name]? -= 1
        if counts[name] == 0 { counts[name] = nil }
    }

    /// Notifies the subscribers on other loops.
    fileprivate func tell(ofExpired key: Key) {
        let members = state.withLock { $0.channels.isEmpty && $0.patterns.isEmpty ? [] : $0.members }
        for member in members where !member.remote.isCurrent {
            member.remote.perform(inModes: .common) { _ in member.value.channels?.tell(ofExpired: key) }
        }
    }
}
