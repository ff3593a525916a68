import RunLoopKit
import RunLoopUnix

/// Serves connections that send lines, and answers each line with another one.
func serve(
    at address: Endpoint, on loop: RunLoop, _ answer: @escaping (_ words: [Substring]) async throws -> String
) throws {
    _ = try Listener(address: address, on: loop) { _, descriptor, _ in
        let connection = Connection(adopting: descriptor, on: loop)
        loop.task {
            defer { connection.close() }
            for try await line in connection.lines() {
                try await connection.write(answer(line.split(separator: " ")) + "\n")
            }
        }
    }
}

/// Sends a line over a new connection.
///
/// - Returns: the line of the answer.
/// - Throws: an error if no answer comes in time; the line may have arrived nevertheless.
func ask(
    _ line: String, at address: Endpoint, on loop: RunLoop, within time: Duration = .seconds(1)
) async throws -> String {
    let end = loop.now + time
    let connection = try await Connection.connect(to: address, on: loop, timeout: time)
    let timeout = loop.perform(at: end) { connection.close() }
    defer {
        timeout.cancel()
        connection.close()
    }
    try await connection.write(line + "\n")
    for try await answer in connection.lines() { return answer }
    throw NoAnswer()
}

struct NoAnswer: Error {}
