import ArgumentParser
import FoundationEssentials
import Glibc

/// The text of a file, of standard input or of a built-in scenario, piece by piece.
final class Input {
    /// The name of the input in messages.
    let name: String
    private(set) var isUnreadable = false
    private let descriptor: Int32
    private var builtIn: [UInt8]?

    /// - Parameter file: a path, `-` for standard input, or the name of a built-in scenario, unless a file has that
    ///   name.
    init(_ file: String) {
        name = file == "-" ? "standard input" : file
        descriptor = file == "-" ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC)
        if descriptor < 0, case .scenario(_, let json)? = Experiment.named(file)?.play { builtIn = json }
    }

    deinit {
        if descriptor > STDIN_FILENO { close(descriptor) }
    }

    /// Returns the next piece; an empty one at the end, or after a read error.
    func read() -> [UInt8] {
        if let builtIn {
            self.builtIn = []
            return builtIn
        }
        // The writer of the next scenario may be waiting for the result of the one before.
        fflush(nil)
        return [UInt8](unsafeUninitializedCapacity: 1 << 16) { piece, count in
            let result = Glibc.read(descriptor, piece.baseAddress, piece.count)
            isUnreadable = result < 0
            count = max(0, result)
        }
    }
}

func write(_ drawing: String, into path: String) throws {
    do {
        try Data(drawing.utf8).write(to: URL(filePath: path))
    } catch {
        complain("\(path): cannot be written")
        throw ExitCode(73)
    }
}

/// Writes one line to standard error.
func complain(_ message: String) {
    let line = Array((message + "\n").utf8)
    _ = Glibc.write(STDERR_FILENO, line, line.count)
}
