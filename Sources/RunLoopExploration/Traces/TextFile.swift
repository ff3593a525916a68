internal import Glibc

/// The reason why the file of a trace or of a finding cannot be read or written. A `Sendable` value.
public enum TraceFileError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The system has refused the file.
    case file(String, errno: Int32)
    /// The file has other contents.
    case notATrace(String)

    public var description: String {
        switch self {
        case .file(let path, let reason): "\(path): \(String(cString: strerror(reason)))"
        case .notATrace(let path): "\(path) is neither the trace of a simulation nor a finding with its runs"
        }
    }
}

/// Files of text.
enum TextFile {
    static func read(_ path: String) throws(TraceFileError) -> String {
        guard let file = fopen(path, "re") else { throw .file(path, errno: errno) }
        defer { fclose(file) }
        var (text, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { text += buffer[..<count] }
        guard ferror(file) == 0 else { throw .file(path, errno: errno) }
        return String(decoding: text, as: UTF8.self)
    }

    static func write(_ text: String, to path: String) throws(TraceFileError) {
        guard let file = fopen(path, "we") else { throw .file(path, errno: errno) }
        let isWritten = fputs(text, file) >= 0
        let reason = errno
        guard fclose(file) == 0, isWritten else { throw .file(path, errno: isWritten ? errno : reason) }
    }
}
