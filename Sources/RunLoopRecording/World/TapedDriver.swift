@_spi(Ports) internal import RunLoopCore

/// A driver that waits with the real one, or returns the recorded outcome.
final class TapedDriver: Driver {
    /// The real driver; `nil` in a replay.
    private let real: (any Driver)?
    private let tape: Tape
    let waker: any Waker

    init(_ real: (any Driver)?, _ tape: Tape, _ waker: any Waker) {
        (self.real, self.tape, self.waker) = (real, tape, waker)
    }

    var now: RunLoop.Instant { tape.clock { real!.now } }

    func wait(until deadline: RunLoop.Instant, into ready: ReadyQueue) -> WaitOutcome {
        tape.wait(until: deadline, into: ready) { real!.wait(until: deadline, into: ready) }
    }

    func check(_ descriptor: Int32) throws(DescriptorError) {
        try tape.call(.check, [.number(descriptor)], .outcome(of: descriptor)) {
            Result { () throws(DescriptorError) in try real!.check(descriptor) }
        }.get()
    }

    func watch(_ descriptor: Int32, for events: DescriptorEvents, token: SourceToken) throws(DescriptorError) {
        let arguments: [Argument] = [
            .number(descriptor), .number(Int(events.rawValue)), .number(Int(token.slot)), .number(Int(token.version)),
        ]
        try tape.call(.watch, arguments, .outcome(of: descriptor)) {
            Result { () throws(DescriptorError) in try real!.watch(descriptor, for: events, token: token) }
        }.get()
        tape.watched(token)
    }

    func watchWallClock(token: SourceToken) {
        tape.call(.watchWallClock, [], .none) { real!.watchWallClock(token: token) }
        tape.watched(token)
    }

    // Nothing to record: the world answers nothing.
    func unwatch(_ token: SourceToken) {
        real?.unwatch(token)
        tape.unwatched(token)
    }
}

extension Coding where Value == Result<Void, DescriptorError> {
    static func outcome(of descriptor: Int32) -> Coding {
        Coding { result, bytes in
            guard case .failure(let error) = result else { return bytes.put(false) }
            bytes.put(true)
            switch error {
            case .notOpen: bytes.put(-1)
            case .notPollable: bytes.put(-2)
            case .system(_, let reason): bytes.put(Int(reason))
            }
        } decode: { bytes in
            guard bytes.flag() else { return .success(()) }
            return switch bytes.int32() {
            case -1: .failure(.notOpen(descriptor))
            case -2: .failure(.notPollable(descriptor))
            case let reason: .failure(.system(descriptor, errno: reason))
            }
        }
    }
}
