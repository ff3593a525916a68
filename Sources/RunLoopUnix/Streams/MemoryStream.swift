package import RunLoopKit

/// One of two ends of a stream in memory: what is written to the one is read from the other. Both belong to one loop.
package final class MemoryStream: ByteStream {
    private let capacity: Int
    private let incoming = ByteBuffer(capacity: 64)
    private weak var peer: MemoryStream?
    private var hasPeerEnded = false
    private var hasEnded = false
    private var source: CustomSource?

    package weak var owner: (any StreamOwner)?
    package var interest: DescriptorEvents = [] {
        didSet { signal() }
    }

    /// Two ends.
    ///
    /// - Parameter capacity: how many bytes that are not yet read each end holds.
    package static func pair(capacity: Int = 64 * 1024) -> (MemoryStream, MemoryStream) {
        let (one, other) = (MemoryStream(capacity), MemoryStream(capacity))
        (one.peer, other.peer) = (other, one)
        return (one, other)
    }

    private init(_ capacity: Int) {
        self.capacity = capacity
    }

    deinit {
        close(isComplete: false)
    }

    package var isOpen: Bool { true }
    package var holdsInput: Bool { false }
    package var failure: (any StreamFailure)? { nil }
    package var fileDescriptor: Int32 { -1 }
}
