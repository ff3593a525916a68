@_spi(Ports) package import RunLoopKit
@_spi(Ports) package import RunLoopUnix

/// A stream that counts the bytes that pass through another one.
package final class CountingStream: ByteStream {
    private let below: any ByteStream
    package private(set) var readBytes = 0
    package private(set) var writtenBytes = 0

    package init(over below: any ByteStream) {
        self.below = below
    }

    package func read(into room: UnsafeMutableRawBufferPointer) -> StreamResult {
        count(below.read(into: room), in: \.readBytes)
    }

    package func write(_ bytes: UnsafeRawBufferPointer) -> StreamResult {
        count(below.write(bytes), in: \.writtenBytes)
    }

    package func write(gathering pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> StreamResult {
        count(below.write(gathering: pieces), in: \.writtenBytes)
    }

    private func count(
        _ result: StreamResult, in counter: ReferenceWritableKeyPath<CountingStream, Int>
    ) -> StreamResult {
        if case .done(let count) = result { self[keyPath: counter] += count }
        return result
    }

    // The stream changes no event, so its owner is that of the lower stream.
    package var owner: (any StreamOwner)? {
        get { below.owner }
        set { below.owner = newValue }
    }
    package var interest: DescriptorEvents {
        get { below.interest }
        set { below.interest = newValue }
    }
    package var name: String? {
        get { below.name }
        set { below.name = newValue }
    }
    package var isOpen: Bool { below.isOpen }
    package var holdsInput: Bool { below.holdsInput }
    package var failure: (any StreamFailure)? { below.failure }
    package var fileDescriptor: Int32 { below.fileDescriptor }
    package var unsentOutput: Int { below.unsentOutput }
    package func open(
        on loop: RunLoop, inModes modes: RunLoop.Modes, origin: RunLoop.Origin, interest: DescriptorEvents
    ) throws(DescriptorError) {
        try below.open(on: loop, inModes: modes, origin: origin, interest: interest)
    }
    package func endWriting() -> StreamResult { below.endWriting() }
    package func mayClose(peerHasEnded: Bool) -> Bool { below.mayClose(peerHasEnded: peerHasEnded) }
    package func holdForAnswer() -> (any TimeHold)? { below.holdForAnswer() }
    package func leave() { below.leave() }
    package func close(_ ending: StreamEnding) { below.close(ending) }
}
