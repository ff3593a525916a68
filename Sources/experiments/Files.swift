import ArgumentParser
import FoundationEssentials
import Glibc

func write(_ drawing: String, into path: String) throws {
    do {
        try Data(drawing.utf8).write(to: URL(filePath: path))
    } catch {
        try fail("\(path): cannot be written", status: 73)
    }
}

func fail(_ message: String, status: Int32) throws -> Never {
    let line = Array((message + "\n").utf8)
    _ = Glibc.write(STDERR_FILENO, line, line.count)
    throw ExitCode(status)
}
