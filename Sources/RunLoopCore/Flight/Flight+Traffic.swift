extension Flight {
    /// The bytes that a connection has moved.
    public struct Traffic: Sendable, Hashable {
        /// The connection: its name, and where it was made.
        public let connection: Handler?
        /// The connection's descriptor. A later connection of the same name and place may have it, too.
        public let descriptor: Int32
        /// How many bytes it has received from the system, with TLS encrypted ones.
        public let received: Int
        /// How many bytes it has sent, in the same way.
        public let sent: Int
    }

    /// The connections that have moved bytes, those with most bytes first. O(events).
    public var traffic: [Traffic] {
        struct Key: Hashable {
            let connection: Handler?
            let descriptor: Int32
        }
        var sums: [Key: (received: Int, sent: Int)] = [:]
        for entry in entries {
            guard case .moved(let connection, let descriptor, let received, let sent) = entry.event else { continue }
            let key = Key(connection: connection, descriptor: descriptor)
            sums[key, default: (0, 0)].received += received
            sums[key]!.sent += sent
        }
        return sums.map {
            Traffic(connection: $0.connection, descriptor: $0.descriptor, received: $1.received, sent: $1.sent)
        }.ordered { ($1.received + $1.sent, $0.descriptor) < ($0.received + $0.sent, $1.descriptor) }
    }
}
