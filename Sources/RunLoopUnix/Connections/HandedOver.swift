/// A connection's stream without the connection.
struct HandedOver {
    let stream: any ByteStream
    let isStarted: Bool
    let limits: Connection.Limits
    /// What was received and not used.
    let input: ByteBuffer?
    /// What waits to be sent.
    let output: ByteBuffer?
    let hasPeerEnded: Bool
    let hasFinishedWriting: Bool
}
