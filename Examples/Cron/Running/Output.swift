import RunLoopKit
import RunLoopUnix

/// The standard output and standard error of a child, line by line as they arrive.
final class Output {
    /// The last lines, the latest last.
    private(set) var lastLines: [String] = []

    private let loop: RunLoop
    private let heard: (String) -> Void
    private var pipes: [Connection] = []
    private var readers: [Task<Void, any Error>] = []

    private static let keptLines = 20
    /// The wait for the end of a pipe after the child has ended: a process outside the child's group may hold the pipe
    /// open forever.
    private static let patience = Duration.seconds(1)

    /// - Parameter heard: called with each line.
    init(of child: ChildProcess, on loop: RunLoop, _ heard: @escaping (String) -> Void) {
        (self.loop, self.heard) = (loop, heard)
        for pipe in [child.standardOutput, child.standardError] {
            let connection = Connection(reading: pipe, writing: nil, on: loop)
            pipes.append(connection)
            readers.append(loop.task { [self] in try await connection.withStream(read) })
        }
    }

    private nonisolated(nonsending) func read(_ pipe: Connection) async throws {
        var lines = LineCutter()
        while let bytes = try await pipe.read() { lines.cut(bytes, take) }
        lines.end(take)
    }

    private func take(_ line: String) {
        lastLines.append(line)
        if lastLines.count > Self.keptLines { lastLines.removeFirst() }
        heard(line)
    }

    /// Waits for the remaining output when the child has ended.
    nonisolated(nonsending) func end() async {
        let patience = loop.perform(afterDelay: Self.patience, inModes: .common) { [pipes] in
            for pipe in pipes { pipe.close() }
        }
        for reader in readers { _ = await reader.result }
        patience.cancel()
    }
}

/// Cuts pieces of output into lines, and splits lines that are too long.
struct LineCutter {
    private var line: [UInt8] = []

    static let longest = 4_096

    /// Calls `body` with each complete line. Bytes that are not UTF-8 become U+FFFD, and control characters except tabs
    /// are escaped, because the lines are shown on terminals.
    mutating func cut(_ bytes: [UInt8], _ body: (String) -> Void) {
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                take(body)
            } else {
                if line.count == Self.longest { take(body) }
                line.append(byte)
            }
        }
    }

    /// Calls `body` with the bytes after the last complete line.
    mutating func end(_ body: (String) -> Void) {
        if !line.isEmpty { take(body) }
    }

    private mutating func take(_ body: (String) -> Void) {
        let scalars = String(decoding: line, as: UTF8.self).unicodeScalars
        body(
            scalars.map { scalar in
                let isControl = scalar.properties.generalCategory == .control && scalar != "\t"
                return isControl ? scalar.escaped(asASCII: true) : String(scalar)
            }.joined())
        line.removeAll(keepingCapacity: true)
    }
}
