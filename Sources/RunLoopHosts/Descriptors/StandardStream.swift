internal import RunLoopCore

/// What a standard stream leads to that is neither a pipe nor a file. There is nothing to read in it.
final class StandardStream: OpenDescription {
    /// Told what is written.
    private let output: (String) -> Void

    init(_ output: @escaping (String) -> Void = { _ in }) {
        self.output = output
    }

    override var isPollable: Bool { true }
    override var readiness: DescriptorEvents { [.readable, .writable] }

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int { 0 }

    override func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        output(String(decoding: bytes, as: UTF8.self))
        return bytes.count
    }
}
