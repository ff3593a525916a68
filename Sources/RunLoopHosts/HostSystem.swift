internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation
internal import RunLoopUnix

/// The system as a simulated process sees it: descriptors of its own, beside those of the real one.
final class HostSystem: SystemCalls, SimulatedDescriptors, @unchecked Sendable {
    // Unchecked: only the thread whose turn it is gets here.
    private enum Entry {
        case socket(SimulatedSocket)
        case counter(SimulatedSignalCounter)
        case file(SimulatedDisk.Node)
        /// Something that can only be closed.
        case other
    }

    /// More than any number that the system gives.
    private static let first: Int32 = 1 << 30

    let machine: Machine
    private let network: Network
    private var entries: [Entry?] = []
    private let mostDescriptors: Int
    private let real = RealSystem.shared
    let processIdentifier: Int32
    private var environment: [String: String]
    private var ignored: Set<Signal> = []
    /// Told what the process says to its service manager.
    var manager: ((String) -> Void)?

    init(
        _ machine: Machine, on network: Network, mostDescriptors: Int, processIdentifier: Int32 = getpid(),
        environment: [String: String] = [:]
    ) {
        (self.machine, self.network, self.mostDescriptors) = (machine, network, mostDescriptors)
        (self.processIdentifier, self.environment) = (processIdentifier, environment)
    }

    private func entry(_ descriptor: Int32) -> Entry? {
        let index = Int(descriptor) - Int(Self.first)
        return entries.indices.contains(index) ? entries[index] : nil
    }

    private func isReal(_ descriptor: Int32) -> Bool { descriptor < Self.first }

    private func socket(_ descriptor: Int32) -> SimulatedSocket? {
        if case .socket(let socket)? = entry(descriptor) { return socket }
        errno = entry(descriptor) == nil ? EBADF : ENOTSOCK
        return nil
    }

    /// The lowest number that is free, as on Unix.
    private func add(_ entry: Entry) -> Int32 {
        let index = entries.firstIndex { $0 == nil } ?? entries.count
        guard index < mostDescriptors else {
            errno = EMFILE
            return -1
        }
        if index == entries.count { entries.append(nil) }
        entries[index] = entry
        return Self.first + Int32(index)
    }

    /// The process has ended: the system closes what it has left open.
    func closeAll() {
        for index in entries.indices { close(Self.first + Int32(index)) }
    }

    /// Connections to another machine fail at this end.
    func resetConnections(to other: Machine) {
        for case .socket(let socket)? in entries where socket.peer === other { socket.reset(ECONNRESET) }
    }

    /// The machine has stopped: nobody is told.
    func vanish() {
        for case .socket(let socket)? in entries { socket.vanish() }
        entries.removeAll()
    }

    // MARK: Any descriptor

    func isSocket(_ descriptor: Int32) -> Bool {
        isReal(descriptor) ? real.isSocket(descriptor) : socket(descriptor) != nil
    }

    /// The kernel knows nothing of these.
    var splices: Bool { false }

    func prepare(_ descriptor: Int32) {
        if isReal(descriptor) { real.prepare(descriptor) }
    }

    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer) -> Int {
        isReal(descriptor) ? real.read(descriptor, into: room) : socket(descriptor)?.read(into: room) ?? -1
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        isReal(descriptor) ? real.write(descriptor, bytes) : socket(descriptor)?.write(bytes) ?? -1
    }

    func close(_ descriptor: Int32) {
        guard !isReal(descriptor) else { return real.close(descriptor) }
        guard let entry = entry(descriptor) else { return }
        entries[Int(descriptor - Self.first)] = nil
        switch entry {
        case .socket(let socket): socket.close()
        case .file(let node): machine.disk.unlock(node, by: ObjectIdentifier(self))
        case .counter, .other: break
        }
    }

    func openReserve() -> Int32 { add(.other) }

    // MARK: Sockets

    func socket(_ family: Int32) -> Int32 { add(.socket(SimulatedSocket(family, on: machine, network))) }

    func setOption(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        guard !isReal(descriptor) else { return real.setOption(descriptor, level, option, value) }
        socket(descriptor)?.setOption(level, option, value)
    }

    func option(_ descriptor: Int32, _ level: Int32, _ option: Int32) -> Int32? {
        isReal(descriptor) ? real.option(descriptor, level, option) : socket(descriptor)?.option(level, option)
    }

    func bind(_ descriptor: Int32, to address: Endpoint) -> Int32 {
        isReal(descriptor) ? real.bind(descriptor, to: address) : socket(descriptor)?.bind(to: address) ?? -1
    }

    func listen(_ descriptor: Int32, backlog: Int32) -> Int32 {
        isReal(descriptor)
            ? real.listen(descriptor, backlog: backlog) : socket(descriptor)?.listen(backlog: backlog) ?? -1
    }

    func accept(_ descriptor: Int32, peer: inout Endpoint) -> Int32 {
        guard !isReal(descriptor) else { return real.accept(descriptor, peer: &peer) }
        guard let listener = socket(descriptor) else { return -1 }
        guard entries.contains(where: { $0 == nil }) || entries.count < mostDescriptors else {
            errno = EMFILE
            return -1
        }
        guard let connection = listener.accept() else { return -1 }
        peer = connection.peerAddress
        return add(.socket(connection))
    }

    func connect(_ descriptor: Int32, to address: Endpoint) -> Int32 {
        isReal(descriptor) ? real.connect(descriptor, to: address) : socket(descriptor)?.connect(to: address) ?? -1
    }

    func localAddress(of descriptor: Int32) -> Endpoint {
        isReal(descriptor) ? real.localAddress(of: descriptor) : socket(descriptor)?.localAddress ?? Endpoint()
    }

    func hasInput(_ descriptor: Int32) -> Bool {
        isReal(descriptor) ? real.hasInput(descriptor) : socket(descriptor)?.hasInput ?? false
    }

    func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        isReal(descriptor) ? real.send(descriptor, bytes) : write(descriptor, bytes)
    }

    func endWriting(_ descriptor: Int32) {
        if isReal(descriptor) { real.endWriting(descriptor) } else { socket(descriptor)?.endWriting() }
    }

    /// Two sockets that are connected to each other, as `socketpair` makes them; -1 if no descriptor is left.
    func makePair() -> (Int32, Int32) {
        let one = SimulatedSocket(AF_UNIX, on: machine, network)
        return (add(.socket(one)), add(.socket(one.makePeer())))
    }

    // MARK: Paths of sockets

    func socketFile(at path: String) -> SocketFile? { machine.files[path] }

    func setPermissions(_ permissions: UInt32, of descriptor: Int32) -> Int32 { socket(descriptor) == nil ? -1 : 0 }

    func setPermissions(_ permissions: UInt32, at path: String) -> Int32 {
        guard machine.files[path] == nil else { return 0 }
        errno = ENOENT
        return -1
    }

    // MARK: Files

    private func file(_ descriptor: Int32) -> SimulatedDisk.Node? {
        if case .file(let node)? = entry(descriptor) { return node }
        errno = EBADF
        return nil
    }

    func open(_ path: String, flags: Int32) -> Int32 {
        guard let node = machine.disk.open(path, flags: flags) else { return -1 }
        return add(.file(node))
    }

    func lock(_ descriptor: Int32) -> Int32 {
        guard let node = file(descriptor) else { return -1 }
        return machine.disk.lock(node, by: ObjectIdentifier(self))
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int {
        file(descriptor).map { machine.disk.write(bytes, to: $0, at: offset) } ?? -1
    }

    func truncate(_ descriptor: Int32, to length: Int) -> Int32 {
        file(descriptor).map { machine.disk.truncate($0, to: length) } ?? -1
    }

    func sync(_ descriptor: Int32) -> Int32 { file(descriptor).map { machine.disk.sync($0) } ?? -1 }

    func map(_ descriptor: Int32) -> UnsafeRawBufferPointer? {
        guard let node = file(descriptor), let content = machine.disk.read(node) else { return nil }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: content.count, alignment: 1)
        copy.copyBytes(from: content)
        return UnsafeRawBufferPointer(copy)
    }

    func unmap(_ contents: UnsafeRawBufferPointer) {
        contents.deallocate()
    }

    func exists(_ path: String) -> Bool { machine.files[path] != nil || machine.disk.exists(path) }

    func rename(_ path: String, to newPath: String) -> Int32 { machine.disk.rename(path, to: newPath) }

    func removeFile(at path: String) -> Int32 {
        guard machine.files[path] == nil else {
            machine.removeFile(at: path)
            return 0
        }
        return machine.disk.remove(path)
    }

    func syncDirectory(_ path: String) -> Int32 { machine.disk.syncDirectory(path) }

    // MARK: Watches

    func check(_ descriptor: Int32) throws(DescriptorError) -> Bool {
        guard !isReal(descriptor) else { return false }
        switch entry(descriptor) {
        case .socket, .counter: return true
        case .file, .other: throw .notPollable(descriptor)
        case nil: throw .notOpen(descriptor)
        }
    }

    func begin(_ watch: DescriptorWatch) {
        switch entry(watch.descriptor) {
        case .socket(let socket): socket.begin(watch)
        case .counter(let counter): counter.begin(watch)
        case .file, .other, nil: break
        }
    }

    func end(_ watch: DescriptorWatch) {
        switch entry(watch.descriptor) {
        case .socket(let socket): socket.end(watch)
        case .counter(let counter): counter.end(watch)
        case .file, .other, nil: break
        }
    }

    func readiness(of descriptor: Int32) -> DescriptorEvents {
        switch entry(descriptor) {
        case .socket(let socket): socket.readiness
        case .counter(let counter): counter.readiness
        case .file, .other, nil: []
        }
    }

    // MARK: The process

    var monotonicMicroseconds: Int64 { network.surroundings.now.nanoseconds / 1_000 }

    func variable(_ name: String) -> String? { environment[name] }

    func removeVariable(_ name: String) {
        environment[name] = nil
    }

    func count(signal: Int32) throws(SystemError) -> any SignalCounter {
        let counter = SimulatedSignalCounter(Signal(rawValue: signal)) { [unowned self] in close($0) }
        counter.descriptor = add(.counter(counter))
        if counter.descriptor < 0 { throw SystemError("make a descriptor to count \(counter.signal)", errno: EMFILE) }
        return counter
    }

    func ignore(signal: Int32) -> Int32 {
        ignored.insert(Signal(rawValue: signal))
        return 0
    }

    /// A signal comes.
    ///
    /// - Returns: whether it ends the process.
    func send(_ signal: Signal) -> Bool {
        guard signal != .kill else { return true }
        let counters = entries.compactMap { entry -> SimulatedSignalCounter? in
            if case .counter(let counter)? = entry, counter.signal == signal { counter } else { nil }
        }
        for counter in counters { counter.add(1) }
        let isHarmless = [SIGCHLD, SIGURG, SIGWINCH, SIGCONT].contains(signal.rawValue)
        return counters.isEmpty && !ignored.contains(signal) && !isHarmless
    }

    func openNotifySocket() -> Int32 { add(.other) }

    func notify(_ descriptor: Int32, at address: [UInt8], _ message: [UInt8]) -> Int {
        guard let manager else {
            errno = ECONNREFUSED
            return -1
        }
        manager(String(decoding: message, as: UTF8.self))
        return message.count
    }
}
