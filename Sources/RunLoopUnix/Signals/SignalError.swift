internal import Glibc

/// A failure to watch or ignore a signal.
public enum SignalError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The system offers programs no signal with this number.
    case noSuchSignal(Int32)
    /// The effect of SIGKILL and SIGSTOP cannot be changed.
    case cannotBeHandled(Signal)
    /// The signal reports a failed instruction, which would fail again after each call of a handler.
    case isFault(Signal)

    public var description: String {
        switch self {
        case .noSuchSignal(let number): "the system has no signal \(number) for programs"
        case .cannotBeHandled(let signal): "\(signal) can be neither handled nor ignored"
        case .isFault(let signal): "\(signal) reports a failed instruction, after which the program cannot continue"
        }
    }

    static func check(_ signal: Signal) throws(SignalError) {
        let number = signal.rawValue
        // The C library uses the numbers between the standard signals and the first real-time signal.
        guard number > 0, number <= SIGSYS || signal.isRealTime else { throw .noSuchSignal(number) }
        if number == SIGKILL || number == SIGSTOP { throw .cannotBeHandled(signal) }
        if [SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS].contains(number) { throw .isFault(signal) }
    }
}
