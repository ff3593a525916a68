import FoundationEssentials
import RunLoopUnix

/// The jobs of a file, in its order.
struct JobTable: Hashable, Sendable {
    let jobs: [Job]

    /// The reason why a file is not a table.
    struct Unreadable: Error, Sendable, CustomStringConvertible {
        /// The file, the line, if any, and the reason: `jobs:3: there is no command`.
        let description: String
    }

    /// Reads a table: one job a line, and empty lines and comments, which begin with `#`.
    ///
    /// - Parameters:
    ///   - path: the path of the file, for errors.
    ///   - zone: the time zone for lines that name none.
    init(_ bytes: some Sequence<UInt8>, of path: String, in zone: TimeZone) throws(Unreadable) {
        var jobs: [Job] = []
        var lines: [String: Int] = [:]
        for (index, bytes) in Array(bytes).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .enumerated()
        {
            let number = index + 1
            do throws(JobLine.Mistake) {
                guard let job = try Self.job(bytes, in: zone) else { continue }
                if let other = lines[job.name] {
                    throw JobLine.Mistake(reason: "line \(other) has a job of the name \(job.name) already")
                }
                lines[job.name] = number
                jobs.append(job)
            } catch {
                throw Unreadable(description: "\(path):\(number): \(error.reason)")
            }
        }
        self.jobs = jobs
    }

    private static func job(_ bytes: ArraySlice<UInt8>, in zone: TimeZone) throws(JobLine.Mistake) -> Job? {
        guard let text = String(validating: bytes, as: UTF8.self), !text.utf8.contains(0) else {
            throw JobLine.Mistake(reason: "this is not text in UTF-8")
        }
        let line = text.trimmingPrefix { $0.isWhitespace }
        guard let first = line.first, first != "#" else { return nil }
        return try JobLine.job(line.hasSuffix("\r") ? line.dropLast() : line, in: zone)
    }

    /// Reads the table of a file. Blocks for the disk.
    static func read(_ path: String, in zone: TimeZone) throws(Unreadable) -> JobTable {
        do {
            let bytes = try Disk.current.open(path, .reading).contents()
            return try JobTable(bytes, of: path, in: zone)
        } catch let error as Unreadable {
            throw error
        } catch {
            throw Unreadable(description: "\(error)")
        }
    }
}
