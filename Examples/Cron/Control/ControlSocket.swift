import Logging
import RunLoopKit
import RunLoopUnix

/// A Unix socket that receives commands, line by line. Used on the daemon's loop.
final class ControlSocket {
    private let loop: RunLoop
    private let listener: Listener
    private let answers: Answers
    private let log: Logger
    private var sessions: [ObjectIdentifier: Connection] = [:]

    private static let mostSessions = 32
    private static let longestCommand = 256
    private static let limits = {
        var limits = Connection.Limits()
        limits.idleTimeout = .seconds(60)
        return limits
    }()

    /// - Throws: `SystemError` if the daemon cannot listen at `path`.
    init(at path: String, on loop: RunLoop, _ answers: Answers, _ log: Logger) throws {
        (self.loop, self.answers, self.log) = (loop, answers, log)
        listener = try Listener(address: Endpoint(path: path), on: loop)
        listener.errorHandler = { [log] _, error in log.warning("\(error)") }
        loop.task(name: "control") { [self] in try await accept() }
    }

    private nonisolated(nonsending) func accept() async throws {
        while let connection = try await listener.accept(limits: Self.limits) {
            guard sessions.count < Self.mostSessions else {
                log.warning("too many are connected to the control socket; closed")
                continue
            }
            sessions[ObjectIdentifier(connection)] = connection
            loop.task(name: "session") { [self] in
                try await connection.withStream(serve)
            } then: { [self] _ in
                sessions[ObjectIdentifier(connection)] = nil
            }
        }
    }

    private nonisolated(nonsending) func serve(_ connection: Connection) async throws {
        for try await line in connection.lines(upTo: Self.longestCommand) {
            try await connection.write(await answers.answer(line))
        }
    }

    /// Stops accepting connections; existing ones stay open.
    func stopListening() {
        listener.finish()
    }

    func close() {
        for session in sessions.values { session.close() }
    }
}
