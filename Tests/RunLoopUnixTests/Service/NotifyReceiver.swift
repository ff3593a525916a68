import Glibc
import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopUnix

/// The service manager's side of the notification socket.
final class NotifyReceiver {
    /// The value for `NOTIFY_SOCKET`.
    let address: String
    let descriptor: Int32
    private let directory = TemporaryDirectory()

    init(isAbstract: Bool = false) throws {
        address = (isAbstract ? "@" : "") + directory["notify"]
        descriptor = socket(AF_UNIX, SocketKind.datagrams | SocketKind.nonBlocking, 0)
        let bytes = try NotifySocket.address(of: address)
        let status = bytes.withUnsafeBytes {
            bind(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t($0.count))
        }
        try #require(status == 0, "errno \(errno)")
    }

    deinit {
        close(descriptor)
    }

    /// Returns the next message, if there is one.
    func next() -> String? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
    }

    /// Returns the messages that have arrived.
    func messages() -> [String] {
        var messages: [String] = []
        while let message = next() { messages.append(message) }
        return messages
    }

    /// Makes a manager that sends here.
    func manager(_ further: [String: String] = [:]) throws -> ServiceManager {
        try ServiceManager(
            environment: ["NOTIFY_SOCKET": address].merging(further) { _, further in further })
    }

    /// Fills the receiver's queue, as if it did not read.
    func fill(_ manager: ServiceManager) {
        for number in 0..<100_000 {
            do { try manager.status("\(number)") } catch { return precondition(error == .busy) }
        }
        preconditionFailure("the queue has no end")
    }

    /// Records the times of messages, in any mode of the loop.
    func listen(on loop: RunLoop, inModes modes: RunLoop.Modes, _ body: @escaping (String, RunLoop.Instant) -> Void)
        throws
    {
        let source = DescriptorSource(fileDescriptor: descriptor, events: .readable) { [self] _, _ in
            for message in messages() { body(message, loop.now) }
        }
        try loop.add(source, forMode: modes)
    }
}
