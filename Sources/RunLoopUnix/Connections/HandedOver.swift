/// A connection's stream without the connection.
struct HandedOver {
    let stream: any ByteStream
    let isStarted: Bool
    let limits: Connection.Limits
    /// The unused input.
    let input: ByteBuffer?
    /// The waiting output.
    let output: ByteBuffer?
    let hasPeerEnded: Bool
    let hasFinishedWriting: Bool
}
