import Logging
import RunLoopKit
import RunLoopUnix

/// A Unix socket that receives commands, line by line. Used on the daemon's loop.
struct ControlSocket {
    /// The server of the sessions, at most 32; more are closed at once.
    let server: Server

    private static let longestCommand = 256
    private static let options = {
        var options = Server.Options()
        options.maximumConnections = 32
        options.overflow = .refuse()
        return options
    }()

    /// - Throws: `SystemError` if the daemon cannot listen at `path`.
    init(at path: String, on loop: RunLoop, _ answers: Answers, _ log: Logger) throws {
        server = Server(on: loop, options: Self.options) { connection, _ in
            connection.limits.idleTimeout = .seconds(60)
            for try await line in connection.lines(upTo: Self.longestCommand) {
                try await connection.write(await answers.answer(line))
            }
        }
        server.errorHandler = { _, error in log.info("the control socket: \(error)") }
        try server.listen(on: Endpoint(path: path))
    }
}
