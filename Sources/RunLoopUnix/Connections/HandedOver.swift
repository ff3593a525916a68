/// A stream handed over by a connection, with its unused input, waiting output and limits.
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
