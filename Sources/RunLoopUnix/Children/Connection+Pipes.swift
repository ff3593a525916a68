public import RunLoopKit

extension Connection {
    /// Creates a connection on pipes to a child process, which reads the child's output and writes its input.
    ///
    /// ```swift
    /// let child = try ChildProcess.spawn(.named("sort"), standardInput: .pipe, standardOutput: .pipe)
    /// let sort = Connection(
    ///     reading: child.standardOutput, writing: child.standardInput, on: loop,
    ///     receive: Framing.lines { _, line in … })
    /// sort.endHandler = { _ in … }  // or it closes when the child has closed its output
    /// try sort.start()
    /// sort.write("b\na\n")
    /// sort.finishWriting()  // the child sees the end of its input
    /// ```
    ///
    /// The connection takes over the descriptors; the pipe ends are then closed.
    ///
    /// - Parameters:
    ///   - input: the end to read; `nil` for none.
    ///   - output: the end to write; `nil` for none.
    ///   - loop: the loop that serves the connection.
    ///   - modes: the modes in which the connection is served.
    ///   - limits: the limits of the connection.
    ///   - receive: called with the received bytes; returns how many bytes it has used. Kept until the connection is
    ///     closed.
    public convenience init(
        reading input: PipeEnd?, writing output: PipeEnd?, on loop: RunLoop, inModes modes: RunLoop.Modes = .common,
        limits: Limits = Limits(), receive: ReceiveHandler? = nil, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        self.init(
            adoptingInput: input?.handOver(), output: output?.handOver(), on: loop, inModes: modes, limits: limits,
            receive: receive, file: file, line: line)
    }
}
