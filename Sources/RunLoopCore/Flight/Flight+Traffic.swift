extension Flight {
    /// The bytes that a connection has moved.
    public struct Traffic: Sendable, Hashable {
        /// The connection: its name, and the place where it was made.
        public let connection: Handler?
        /// The connection's descriptor. A later connection of the same name and place may have the same one.
        public let descriptor: Int32
        /// The number of bytes received from the system; encrypted ones with TLS.
        public let received: Int
        /// The number of bytes sent to the system; encrypted ones with TLS.
        public let sent: Int
    }

    /// The connections that have moved bytes, the one with the most bytes first. O(events).
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
