@_spi(Ports) public import RunLoopKit
public import RunLoopUnix

/// A process of a ``SimulatedHost``, as its program sees it.
///
/// The program is a block, called on the main thread of the process. After it has returned, the thread's loop runs
/// until it is stopped or nothing is left in it, and then the process ends. A signal without a `SignalSource` ends the
/// process where it is. The program may do everything that a host's program may: use timers, signals, connections and
/// the disk, and start children.
///
/// ```swift
/// host.install(program: "/bin/sleep") { process in
///     guard let seconds = process.arguments.first.flatMap(Int.init) else {
///         process.print("for how many seconds?")
///         return process.exit(2)
///     }
///     process.loop.perform(afterDelay: .seconds(seconds)) {}
/// }
/// ```
///
/// Use it on the main thread of the process; it is not `Sendable`.
public final class SimulatedProcess {
    /// A program of processes, called on the main thread of each.
    public typealias Program = @Sendable (SimulatedProcess) throws -> Void

    private let process: Process
    /// The arguments, without the name of the program.
    public let arguments: [String]
    /// The environment variables of the process.
    public let environment: [String: String]
    /// The main loop of the process.
    public let loop: RunLoop
    /// The stream that the process reads, which gives no input if the process was started without a pipe.
    public let standardInput: PipeEnd
    /// The stream that the process writes. Output to a stream inherited from the host's main process goes to the trace.
    public let standardOutput: PipeEnd
    /// The stream to which the process writes errors.
    public let standardError: PipeEnd

    init(_ process: Process, environment: [String: String], loop: RunLoop, streams: [PipeEnd]) {
        (self.process, self.environment, self.loop) = (process, environment, loop)
        arguments = Array(process.command.dropFirst())
        (standardInput, standardOutput, standardError) = (streams[0], streams[1], streams[2])
    }

    /// The number of the process.
    public var processIdentifier: Int32 { process.processIdentifier }

    /// The working directory of the process.
    public var workingDirectory: String { process.workingDirectory }

    /// Ends the process with this code, from 0 to 255, as soon as the present handler has returned. Without a call, the
    /// code is 0, or 1 if the program throws an error.
    public func exit(_ code: Int32) {
        require(0...255 ~= code, "an exit code is from 0 to 255")
        process.exitCode = code
        loop.endAllRuns()
    }

    /// Writes a line to the process's standard output. As for any program, the call waits while a pipe is full, and
    /// ends the process with SIGPIPE if the pipe has no reader any more.
    public func print(_ text: String) {
        var rest = Array("\(text)\n".utf8)[...]
        while !rest.isEmpty {
            guard let count = try? standardOutput.write(rest) else { return process.end(by: .pipe) }
            rest = rest.dropFirst(count)
            if loop.isEnding { return }
            if count == 0 { waitForRoom() }
        }
    }

    private func waitForRoom() {
        let mode = RunLoop.Mode("room in the standard output")
        let source = DescriptorSource(fileDescriptor: standardOutput.fileDescriptor, events: .writable) { source, _ in
            source.invalidate()
        }
        guard (try? loop.add(source, forMode: RunLoop.Modes(mode))) != nil else { return }
        loop.run(in: mode)
    }
}

@available(*, unavailable, message: "a process belongs to its main thread")
extension SimulatedProcess: Sendable {}
