internal import Glibc

/// Why a signal can be neither watched nor ignored.
public enum SignalError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The system has no signal of that number for programs.
    case noSuchSignal(Int32)
    /// SIGKILL and SIGSTOP always do what they do.
    case cannotBeHandled(Signal)
    /// The signal reports that an instruction has failed. After a handler it would fail again, for ever.
    case isFault(Signal)

    public var description: String {
        switch self {
        case .noSuchSignal(let number): "the system has no signal \(number) for programs"
        case .cannotBeHandled(let signal): "\(signal) can be neither handled nor ignored"
        case .isFault(let signal): "\(signal) tells of a failed instruction, after which the program cannot go on"
        }
    }

    static func check(_ signal: Signal) throws(SignalError) {
        let number = signal.rawValue
        // The numbers between the standard ones and the first real-time signal are the C library's.
        guard number > 0, number <= SIGSYS || signal.isRealTime else { throw .noSuchSignal(number) }
        if number == SIGKILL || number == SIGSTOP { throw .cannotBeHandled(signal) }
        if [SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS].contains(number) { throw .isFault(signal) }
    }
}
