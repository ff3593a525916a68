internal import Glibc
@_spi(Ports) package import RunLoopKit

/// A source that calls its handler on the loop's thread after any thread has rung its bell.
package final class BellSource: RunLoop.SystemSource {
    /// The bell, which lives as long as a thread may ring it.
    package final class Bell: Sendable {
        fileprivate let (reader, writer): (Int32, Int32)

        fileprivate init() throws(RunLoop.StartError) {
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { throw .last("make a pipe for a bell") }
            for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
            (reader, writer) = (ends[0], ends[1])
        }

        deinit {
            close(reader)
            close(writer)
        }

        /// Rings the bell. Any thread; harmless when the source is invalid.
        package func ring() {
            _ = write(writer, "!", 1)
        }
    }

    package let bell: Bell

    /// Creates a source. Add it with `add(_:forMode:)`.
    ///
    /// - Parameter handler: called with the number of rings since the previous call.
    package init(
        handler: @escaping (Int) -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) throws(RunLoop.StartError) {
        bell = try Bell()
        let origin = RunLoop.Origin(file: file, line: line)
        super.init(descriptor: bell.reader, name: "bell", order: 0, origin: origin)
        setHandler(
            { [bell] in
                var rings = [UInt8](repeating: 0, count: 4096)
                let count = read(bell.reader, &rings, rings.count)
                if count > 0 { handler(count) }
            }, cleanup: {})
    }
}

extension RunLoop {
    /// Schedules a bell's source in modes of this loop.
    package func add(_ source: BellSource, forMode modes: Modes) throws(DescriptorError) {
        try schedule(source, modes)
    }
}
