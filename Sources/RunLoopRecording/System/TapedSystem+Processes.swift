internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopUnix

extension TapedSystem {
    // MARK: Children

    func pipe() -> (reading: Int32, writing: Int32)? {
        let ends = call(.pipe, [], .optional(.list(.int32))) { real.pipe().map { [$0.reading, $0.writing] } }
        return ends.map { ends in ends.count == 2 ? (ends[0], ends[1]) : (-1, -1) }
    }

    func duplicate(_ descriptor: Int32) -> Int32 { call(.duplicate, descriptor, .int32, real.duplicate) }

    func start(_ child: ChildStart) throws(ChildStart.Failure) -> Int32 {
        let text = "\(child.files) \(child.arguments) \(child.streams) \(child.group)"
        let result = Array(text.utf8).withUnsafeBytes { details in
            call(.start, [.text(child.arguments.joined(separator: " ")), .digest(details)], .started) {
                Result { () throws(ChildStart.Failure) in try real.start(child) }
            }
        }
        return try result.get()
    }

    func openProcess(_ identifier: Int32) -> Int32 { call(.openProcess, identifier, .int32, real.openProcess) }

    func send(_ signal: Int32, toProcess descriptor: Int32) -> Int32 {
        call(.sendSignal, signal, descriptor, .int32, real.send)
    }

    func kill(_ identifier: Int32, _ signal: Int32) -> Int32 { call(.kill, identifier, signal, .int32, real.kill) }

    func state(ofChild identifier: Int32, _ descriptor: Int32, reaps: Bool) -> ChildProcess.ExitStatus? {
        call(.state, [.number(identifier), .number(descriptor), .number(reaps ? 1 : 0)], .childState) {
            real.state(ofChild: identifier, descriptor, reaps: reaps)
        }
    }

    func reapLater(_ identifier: Int32, _ descriptor: Int32) {
        call(.reapLater, identifier, descriptor, .none, real.reapLater)
    }

    // The world answers nothing, and a replay has no children.
    func reapOrphans() {
        if !isReplay { real.reapOrphans() }
    }

    // MARK: The process

    var processIdentifier: Int32 { call(.processIdentifier, [], .int32) { real.processIdentifier } }

    var monotonicMicroseconds: Int64 {
        Int64(call(.monotonicMicroseconds, [], .int) { Int(real.monotonicMicroseconds) })
    }

    var environment: [[CChar]] {
        call(.environment, [], .list(.bytes)) { real.environment.map { $0.map(UInt8.init(bitPattern:)) } }
            .map { $0.map(CChar.init(bitPattern:)) }
    }

    func variable(_ name: String) -> String? { call(.variable, name, .optional(.text), real.variable) }

    func removeVariable(_ name: String) { call(.removeVariable, name, .none, real.removeVariable) }

    func user(named name: String) throws(SystemError) -> ChildProcess.User {
        let result = call(.user, name, .result(.user)) { name in
            Result { () throws(SystemError) in try real.user(named: name) }
        }
        return try result.get()
    }

    func count(signal: Int32) throws(SystemError) -> any SignalCounter {
        var counter: (any SignalCounter)?
        let descriptor = call(.countSignal, signal, .result(.int32)) { signal in
            Result { () throws(SystemError) in
                counter = try real.count(signal: signal)
                return counter!.descriptor
            }
        }
        return TapedSignalCounter(try descriptor.get(), counter, self)
    }

    func ignore(signal: Int32) -> Int32 { call(.ignoreSignal, signal, .int32, real.ignore) }

    func openNotifySocket() -> Int32 { call(.openNotifySocket, [], .int32, real.openNotifySocket) }

    func notify(_ descriptor: Int32, at address: [UInt8], _ message: [UInt8]) -> Int {
        address.withUnsafeBytes { addressBytes in
            message.withUnsafeBytes { bytes in
                call(.notify, [.number(descriptor), .digest(addressBytes), .digest(bytes)], .int) {
                    real.notify(descriptor, at: address, message)
                }
            }
        }
    }
}

/// Counts a signal, or returns the recorded counts.
private final class TapedSignalCounter: SignalCounter {
    let descriptor: Int32
    /// The real counter; `nil` in a replay.
    private let real: (any SignalCounter)?
    private let system: TapedSystem

    init(_ descriptor: Int32, _ real: (any SignalCounter)?, _ system: TapedSystem) {
        (self.descriptor, self.real, self.system) = (descriptor, real, system)
    }

    func take() -> Int { system.call(.takeSignals, descriptor, .int) { _ in real!.take() } }

    // Nothing to record: the world answers nothing.
    func prime() { real?.prime() }
    func end() { real?.end() }
}

extension Coding where Value == Result<Int32, ChildStart.Failure> {
    private static var steps: [ChildStart.Step] { [.fork, .streams, .group, .limits, .user, .directory, .execute] }

    static let started = Coding { result, bytes in
        switch result {
        case .success(let process):
            bytes.put(Int(process))
            bytes.put(-1)
        case .failure(let failure):
            bytes.put(Int(failure.errno))
            bytes.put(steps.firstIndex(of: failure.step)!)
        }
    } decode: { bytes in
        let (number, step) = (bytes.int32(), bytes.number())
        return steps.indices.contains(step)
            ? .failure(ChildStart.Failure(steps[step], errno: number)) : .success(number)
    }
}

extension Coding where Value == ChildProcess.ExitStatus? {
    static let childState = Coding { state, bytes in
        switch state {
        case nil: bytes.put(0)
        case .lost: bytes.put(1)
        case .exited(let code):
            bytes.put(3)
            bytes.put(Int(code))
        case .signalled(let signal, let coreDumped):
            bytes.put(coreDumped ? 5 : 4)
            bytes.put(Int(signal.rawValue))
        }
    } decode: { bytes in
        switch bytes.number() {
        case 0: nil
        case 3: .exited(bytes.int32())
        case 4: .signalled(Signal(rawValue: bytes.int32()), coreDumped: false)
        case 5: .signalled(Signal(rawValue: bytes.int32()), coreDumped: true)
        default: .lost
        }
    }
}

extension Coding where Value == ChildProcess.User {
    static let user = Coding { user, bytes in
        bytes.put(Int(user.identifier))
        bytes.put(Int(user.group))
        Coding<[Int]>.list(.int).encode(user.supplementaryGroups.map { Int($0) }, &bytes)
    } decode: { bytes in
        ChildProcess.User(
            UInt32(clamping: bytes.number()), group: UInt32(clamping: bytes.number()),
            supplementaryGroups: Coding<[Int]>.list(.int).decode(&bytes).map { UInt32(clamping: $0) })
    }
}

extension Coding {
    static func result<Success>(_ coding: Coding<Success>) -> Coding where Value == Result<Success, SystemError> {
        Coding { result, bytes in
            switch result {
            case .success(let value):
                bytes.put(true)
                coding.encode(value, &bytes)
            case .failure(let error):
                bytes.put(false)
                bytes.put(error.operation)
                bytes.put(Int(error.errno))
            }
        } decode: { bytes in
            guard !bytes.flag() else { return .success(coding.decode(&bytes)) }
            return .failure(SystemError(bytes.text(), errno: bytes.int32()))
        }
    }
}
