internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

extension Process {
    private func isReal(_ descriptor: Int32) -> Bool { descriptor < DescriptorTable.first }

    /// The target of a descriptor, of the process or of the real system; `nil`, with `EBADF`, if it is not open.
    func target(of descriptor: Int32) -> OpenDescription? {
        isReal(descriptor) ? SystemDescription(descriptor) : descriptors[descriptor]
    }

    func prepare(_ descriptor: Int32) { target(of: descriptor)?.prepare() }

    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer) -> Int {
        exchange("receive from", target(of: descriptor)) { $0.read(into: room) }
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        exchange("send to", target(of: descriptor)) { $0.write(bytes) }
    }

    func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        exchange("send to", target(of: descriptor)) { $0.send(bytes) }
    }

    func send(_ descriptor: Int32, gathering pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> Int {
        let bytes = pieces.reduce(into: [UInt8]()) { $0 += $1 }
        return bytes.withUnsafeBytes { send(descriptor, $0) }
    }

    func close(_ descriptor: Int32) {
        guard !isReal(descriptor) else { return WorldSystem.real.close(descriptor) }
        guard let target = descriptors.remove(descriptor) else { return }
        // A process loses its locks of a file's parts with any of its descriptors of that file.
        (target as? OpenFile)?.node.partLocks.release(of: ObjectIdentifier(self))
        target.letGo(descriptor, of: self)
    }

    func duplicate(_ descriptor: Int32) -> Int32 {
        guard !isReal(descriptor) else { return WorldSystem.real.duplicate(descriptor) }
        return descriptors[descriptor].map { descriptors.add($0) } ?? -1
    }

    func openReserve() -> Int32 { descriptors.add(OpenDescription()) }

    /// `false`: the real kernel knows nothing of these descriptors.
    var splices: Bool { false }

    func pipe() -> (reading: Int32, writing: Int32)? {
        let pipe = SimulatedPipe.make()
        let reading = descriptors.add(pipe.reading)
        guard reading >= 0 else { return nil }
        let writing = descriptors.add(pipe.writing)
        if writing >= 0 { return (reading, writing) }
        close(reading)
        return failure(EMFILE)
    }

    // MARK: Watches

    func check(_ descriptor: Int32) throws(DescriptorError) -> Bool {
        guard !isReal(descriptor) else { return false }
        guard let description = descriptors[descriptor] else { throw .notOpen(descriptor) }
        guard description.readiness != nil else { throw .notPollable(descriptor) }
        return true
    }

    func begin(_ watch: DescriptorWatch) {
        descriptors[watch.descriptor]?.begin(watch, of: self)
    }

    func end(_ watch: DescriptorWatch) {
        descriptors[watch.descriptor]?.end(watch)
    }

    func readiness(of descriptor: Int32) -> DescriptorEvents { descriptors[descriptor]?.readiness ?? [] }
}
