internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation
internal import RunLoopUnix

/// The system as a simulated process sees it: descriptors of its own, besides those of the real system.
final class HostSystem: SystemCalls, SimulatedDescriptors, @unchecked Sendable {
    // Unchecked: only the thread whose turn it is uses it.

    /// The number of the first descriptor: more than any that the real system gives.
    static let first: Int32 = 1 << 30

    let machine: Machine
    let network: Network
    private var entries: [OpenDescription?] = []
    private let hasStreams: Bool
    private let mostDescriptors: Int
    private let real = RealSystem.shared

    // MARK: The process

    let processIdentifier: Int32
    /// The process that uses this system.
    weak var process: (any MachineProcess)?
    var variables: [String: String]
    private var ignored: Set<Signal> = []
    /// Receives the process's messages to its service manager.
    var manager: ((String) -> Void)?

    init(
        _ machine: Machine, on network: Network, processIdentifier: Int32, environment: [String: String] = [:],
        streams: [OpenDescription] = [], mostDescriptors: Int = .max
    ) {
        (self.machine, self.network, self.mostDescriptors) = (machine, network, mostDescriptors)
        (self.processIdentifier, variables) = (processIdentifier, environment)
        hasStreams = !streams.isEmpty
        for stream in streams { _ = add(stream) }
    }

    // MARK: Descriptors

    func description(of descriptor: Int32) -> OpenDescription? {
        let index = Int(descriptor) - Int(Self.first)
        if entries.indices.contains(index), let description = entries[index] { return description }
        errno = EBADF
        return nil
    }

    func isReal(_ descriptor: Int32) -> Bool { descriptor < Self.first }

    func openSocket(_ descriptor: Int32) -> SimulatedSocket? {
        guard let description = description(of: descriptor) else { return nil }
        if let socket = description as? SimulatedSocket { return socket }
        errno = ENOTSOCK
        return nil
    }

    /// Adds a descriptor with the lowest free number, as on Unix.
    func add(_ description: OpenDescription) -> Int32 {
        let index = entries.firstIndex { $0 == nil } ?? entries.count
        guard index < mostDescriptors else {
            errno = EMFILE
            return -1
        }
        if index == entries.count { entries.append(nil) }
        entries[index] = description
        description.hold()
        return Self.first + Int32(index)
    }

    /// The target of a standard descriptor; `nil` for a process that began without them.
    func standardStream(_ number: Int) -> OpenDescription? { hasStreams ? entries[number] : nil }

    private var openSockets: [SimulatedSocket] { entries.compactMap { $0 as? SimulatedSocket } }

    /// Closes the remaining descriptors of a process that has ended.
    func closeAll() {
        for index in entries.indices { close(Self.first + Int32(index)) }
    }

    /// Makes connections to another machine fail at this end.
    func resetConnections(to other: Machine) {
        for socket in openSockets where socket.peer === other { socket.reset(ECONNRESET) }
    }

    /// Drops the descriptors because the machine has stopped, and notifies nobody.
    func vanish() {
        for socket in openSockets { socket.vanish() }
        entries.removeAll()
    }

    // MARK: Any descriptor

    func isSocket(_ descriptor: Int32) -> Bool {
        isReal(descriptor) ? real.isSocket(descriptor) : openSocket(descriptor) != nil
    }

    /// The kernel knows nothing of these descriptors.
    var splices: Bool { false }

    func prepare(_ descriptor: Int32) {
        if isReal(descriptor) { real.prepare(descriptor) }
    }

    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer) -> Int {
        isReal(descriptor) ? real.read(descriptor, into: room) : description(of: descriptor)?.read(into: room) ?? -1
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        isReal(descriptor) ? real.write(descriptor, bytes) : description(of: descriptor)?.write(bytes) ?? -1
    }

    func close(_ descriptor: Int32) {
        guard !isReal(descriptor) else { return real.close(descriptor) }
        guard let description = description(of: descriptor) else { return }
        entries[Int(descriptor - Self.first)] = nil
        description.letGo(descriptor, of: self)
    }

    func openReserve() -> Int32 { add(OpenDescription()) }

    func duplicate(_ descriptor: Int32) -> Int32 {
        isReal(descriptor) ? real.duplicate(descriptor) : description(of: descriptor).map(add) ?? -1
    }

    // MARK: Sockets

    func socket(_ family: Int32) -> Int32 { add(SimulatedSocket(family, on: machine, network)) }

    func setOption(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        guard !isReal(descriptor) else { return real.setOption(descriptor, level, option, value) }
        openSocket(descriptor)?.setOption(level, option, value)
    }

    func option(_ descriptor: Int32, _ level: Int32, _ option: Int32) -> Int32? {
        isReal(descriptor) ? real.option(descriptor, level, option) : openSocket(descriptor)?.option(level, option)
    }

    func bind(_ descriptor: Int32, to address: Endpoint) -> Int32 {
        isReal(descriptor) ? real.bind(descriptor, to: address) : openSocket(descriptor)?.bind(to: address) ?? -1
    }

    func listen(_ descriptor: Int32, backlog: Int32) -> Int32 {
        isReal(descriptor)
            ? real.listen(descriptor, backlog: backlog) : openSocket(descriptor)?.listen(backlog: backlog) ?? -1
    }

    func accept(_ descriptor: Int32, peer: inout Endpoint) -> Int32 {
        guard !isReal(descriptor) else { return real.accept(descriptor, peer: &peer) }
        guard let listener = openSocket(descriptor) else { return -1 }
        guard entries.contains(where: { $0 == nil }) || entries.count < mostDescriptors else {
            errno = EMFILE
            return -1
        }
        guard let connection = listener.accept() else { return -1 }
        peer = connection.peerAddress
        return add(connection)
    }

    func connect(_ descriptor: Int32, to address: Endpoint) -> Int32 {
        isReal(descriptor) ? real.connect(descriptor, to: address) : openSocket(descriptor)?.connect(to: address) ?? -1
    }

    func localAddress(of descriptor: Int32) -> Endpoint {
        isReal(descriptor) ? real.localAddress(of: descriptor) : openSocket(descriptor)?.localAddress ?? Endpoint()
    }

    func hasInput(_ descriptor: Int32) -> Bool {
        isReal(descriptor) ? real.hasInput(descriptor) : openSocket(descriptor)?.hasInput ?? false
    }

    func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        isReal(descriptor) ? real.send(descriptor, bytes) : write(descriptor, bytes)
    }

    func endWriting(_ descriptor: Int32) {
        if isReal(descriptor) { real.endWriting(descriptor) } else { openSocket(descriptor)?.endWriting() }
    }

    func unsentOutput(_ descriptor: Int32) -> Int {
        isReal(descriptor) ? real.unsentOutput(descriptor) : openSocket(descriptor)?.unsentOutput ?? 0
    }

    func resetWhenClosed(_ descriptor: Int32) {
        if isReal(descriptor) {
            real.resetWhenClosed(descriptor)
        } else {
            openSocket(descriptor)?.resetsWhenClosed = true
        }
    }

    func spreadsConnections(of loop: RunLoop) -> Bool { false }

    /// Makes two connected sockets, as `socketpair` does; -1 if no descriptor is left.
    func makePair() -> (Int32, Int32) {
        let one = SimulatedSocket(AF_UNIX, on: machine, network)
        return (add(one), add(one.makePeer()))
    }

    // MARK: Watches

    func check(_ descriptor: Int32) throws(DescriptorError) -> Bool {
        guard !isReal(descriptor) else { return false }
        guard let description = description(of: descriptor) else { throw .notOpen(descriptor) }
        guard description.isPollable else { throw .notPollable(descriptor) }
        return true
    }

    func begin(_ watch: DescriptorWatch) {
        description(of: watch.descriptor)?.begin(watch, of: self)
    }

    func end(_ watch: DescriptorWatch) {
        description(of: watch.descriptor)?.end(watch)
    }

    func readiness(of descriptor: Int32) -> DescriptorEvents { description(of: descriptor)?.readiness ?? [] }

    // MARK: The time of the simulation

    func holdTime(for what: @autoclosure () -> String, on loop: RunLoop) -> (any TimeHold)? { nil }

    func makeHolds(for socket: Int32, on loop: RunLoop, _ origin: RunLoop.Origin) -> StreamHolds? { nil }

    // MARK: The process and its signals

    var monotonicMicroseconds: Int64 { network.surroundings.now.nanoseconds / 1_000 }

    var environment: [[CChar]] {
        variables.sorted { $0.key < $1.key }.map { Array("\($0.key)=\($0.value)".utf8CString) }
    }

    func variable(_ name: String) -> String? { variables[name] }

    func removeVariable(_ name: String) {
        variables[name] = nil
    }

    func count(signal: Int32) throws(SystemError) -> any SignalCounter {
        let counter = SimulatedSignalCounter(Signal(rawValue: signal)) { [unowned self] in close($0) }
        counter.descriptor = add(counter)
        if counter.descriptor < 0 { throw SystemError("make a descriptor to count \(counter.signal)", errno: EMFILE) }
        return counter
    }

    func ignore(signal: Int32) -> Int32 {
        ignored.insert(Signal(rawValue: signal))
        return 0
    }

    func ignores(_ signal: Signal) -> Bool { ignored.contains(signal) }

    /// Delivers a signal.
    ///
    /// - Returns: whether it ends the process.
    func send(_ signal: Signal) -> Bool {
        guard signal != .kill else { return true }
        let counters = entries.compactMap { $0 as? SimulatedSignalCounter }.filter { $0.signal == signal }
        for counter in counters { counter.add(1) }
        let isHarmless = [SIGCHLD, SIGURG, SIGWINCH, SIGCONT].contains(signal.rawValue)
        return counters.isEmpty && !ignored.contains(signal) && !isHarmless
    }

    func openNotifySocket() -> Int32 { add(OpenDescription()) }

    func notify(_ descriptor: Int32, at address: [UInt8], _ message: [UInt8]) -> Int {
        guard let manager else {
            errno = ECONNREFUSED
            return -1
        }
        manager(String(decoding: message, as: UTF8.self))
        return message.count
    }
}
