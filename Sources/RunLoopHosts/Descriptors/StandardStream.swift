internal import RunLoopCore

/// A standard stream that is neither a pipe nor a file; it gives no input.
final class StandardStream: OpenDescription {
    /// Receives the written text.
    private let output: (String) -> Void

    init(_ output: @escaping (String) -> Void = { _ in }) {
        self.output = output
    }

    override var readiness: DescriptorEvents? { [.readable, .writable] }
    override func read(into room: UnsafeMutableRawBufferPointer) -> Int { 0 }

    override func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        output(String(decoding: bytes, as: UTF8.self))
        return bytes.count
    }
}
