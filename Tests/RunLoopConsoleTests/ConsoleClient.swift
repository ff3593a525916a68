import Glibc
import RunLoopConsole
import TestSupport
import Testing

/// A client of a console: a plain socket, which uses no loop.
final class ConsoleClient {
    private let descriptor: Int32
    private var bytes: [UInt8] = []
    private(set) var snapshots: [Console.Snapshot] = []

    init?(_ path: String) {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let status = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else { return nil }
    }

    deinit { close(descriptor) }

    /// Reads the bytes that have arrived.
    func read() {
        var part = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &part, part.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { break }
            bytes += part[..<count]
        }
        while let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
            do { snapshots.append(try Console.Snapshot(json: Array(bytes[..<end]))) } catch {
                Issue.record("\(error): \(String(decoding: bytes[..<end], as: UTF8.self))")
            }
            bytes.removeFirst(end + 1)
        }
    }

    /// Waits for the first snapshot that satisfies a condition.
    func first(sourceLocation: SourceLocation = #_sourceLocation, where isWanted: (Console.Snapshot) -> Bool)
        -> Console.Snapshot?
    {
        var looked = snapshots.count
        var found: Console.Snapshot?
        _ = eventually("no such snapshot; the last one: \(snapshots.last as Any)", sourceLocation: sourceLocation) {
            read()
            found = snapshots[looked...].first(where: isWanted)
            looked = snapshots.count
            return found != nil
        }
        return found
    }

    /// `true` if the other end has closed, and everything that it sent was read.
    var isClosedByPeer: Bool {
        read()
        return isClosed(peer: descriptor)
    }
}
