internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// A signal of the operating system.
///
/// ```swift
/// let reload = SignalSource(signal: .hangUp) { _ in … }
/// ```
public struct Signal: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The number of the signal, as in `signal.h`.
    public let rawValue: Int32

    /// Creates a signal from its number. An unknown number is reported when the signal is used.
    public init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// SIGHUP: the terminal has closed. By convention, asks a service to reload its configuration.
    public static let hangUp = Signal(rawValue: SIGHUP)
    /// SIGINT: Control-C.
    public static let interrupt = Signal(rawValue: SIGINT)
    /// SIGQUIT: Control-\\; ends the process with a core dump.
    public static let quit = Signal(rawValue: SIGQUIT)
    /// SIGABRT: raised by `abort()`.
    public static let abort = Signal(rawValue: SIGABRT)
    /// SIGKILL: ends the process; cannot be handled.
    public static let kill = Signal(rawValue: SIGKILL)
    /// SIGUSR1: for the program's own use.
    public static let user1 = Signal(rawValue: SIGUSR1)
    /// SIGUSR2: for the program's own use.
    public static let user2 = Signal(rawValue: SIGUSR2)
    /// SIGPIPE: a write to a pipe or socket without readers.
    public static let pipe = Signal(rawValue: SIGPIPE)
    /// SIGALRM: the timer of `alarm` has expired.
    public static let alarm = Signal(rawValue: SIGALRM)
    /// SIGTERM: a request to end.
    public static let terminate = Signal(rawValue: SIGTERM)
    /// SIGCHLD: a child has ended, stopped or continued.
    public static let child = Signal(rawValue: SIGCHLD)
    /// SIGCONT: continues a stopped process.
    public static let resume = Signal(rawValue: SIGCONT)
    /// SIGSTOP: stops the process; cannot be handled.
    public static let stop = Signal(rawValue: SIGSTOP)
    /// SIGTSTP: Control-Z.
    public static let terminalStop = Signal(rawValue: SIGTSTP)
    /// SIGTTIN: a background process reads from the terminal.
    public static let backgroundRead = Signal(rawValue: SIGTTIN)
    /// SIGTTOU: a background process writes to the terminal.
    public static let backgroundWrite = Signal(rawValue: SIGTTOU)
    /// SIGWINCH: the size of the terminal has changed.
    public static let windowChange = Signal(rawValue: SIGWINCH)
    /// SIGILL: an illegal instruction; a trap in Swift on x86.
    public static let illegalInstruction = Signal(rawValue: SIGILL)
    /// SIGTRAP: a breakpoint; a trap in Swift on ARM.
    public static let trap = Signal(rawValue: SIGTRAP)
    /// SIGBUS: an access to memory that does not exist.
    public static let busError = Signal(rawValue: SIGBUS)
    /// SIGFPE: an arithmetic error, such as a division by zero.
    public static let arithmetic = Signal(rawValue: SIGFPE)
    /// SIGSEGV: an access outside the process's memory.
    public static let segmentationFault = Signal(rawValue: SIGSEGV)
    /// SIGSYS: a system call that is not allowed.
    public static let badSystemCall = Signal(rawValue: SIGSYS)

    /// The first real-time signal for a program's own use. Real-time signals are queued: each signal sent is delivered.
    public static var firstRealTime: Signal { Signal(rawValue: __libc_current_sigrtmin()) }
    /// The last real-time signal.
    public static var lastRealTime: Signal { Signal(rawValue: __libc_current_sigrtmax()) }

    /// Returns the real-time signal SIGRTMIN + `offset`.
    ///
    /// - Precondition: `offset` is not negative, and the signal is not beyond ``lastRealTime``.
    public static func realTime(_ offset: Int32) -> Signal {
        let signal = Signal(rawValue: firstRealTime.rawValue &+ max(0, offset))
        require(
            offset >= 0 && signal.isRealTime,
            "there is no real-time signal \(offset); the last is \(lastRealTime.rawValue - firstRealTime.rawValue)")
        return signal
    }

    /// A Boolean value that indicates whether the signal is a real-time signal, of which each one sent is delivered.
    /// The system keeps at most one pending delivery of any other signal.
    public var isRealTime: Bool { rawValue >= Self.firstRealTime.rawValue && rawValue <= Self.lastRealTime.rawValue }

    /// The system's name, such as `SIGTERM` or `SIGRTMIN+3`.
    public var name: String {
        if isRealTime { return "SIGRTMIN+\(rawValue - Self.firstRealTime.rawValue)" }
        return names[rawValue] ?? "signal \(rawValue)"
    }

    /// The ``name``.
    public var description: String { name }
}

private let names: [Int32: String] = [
    SIGHUP: "SIGHUP", SIGINT: "SIGINT", SIGQUIT: "SIGQUIT", SIGILL: "SIGILL", SIGTRAP: "SIGTRAP", SIGABRT: "SIGABRT",
    SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGKILL: "SIGKILL", SIGUSR1: "SIGUSR1", SIGSEGV: "SIGSEGV",
    SIGUSR2: "SIGUSR2", SIGPIPE: "SIGPIPE", SIGALRM: "SIGALRM", SIGTERM: "SIGTERM", SIGSTKFLT: "SIGSTKFLT",
    SIGCHLD: "SIGCHLD", SIGCONT: "SIGCONT", SIGSTOP: "SIGSTOP", SIGTSTP: "SIGTSTP", SIGTTIN: "SIGTTIN",
    SIGTTOU: "SIGTTOU", SIGURG: "SIGURG", SIGXCPU: "SIGXCPU", SIGXFSZ: "SIGXFSZ", SIGVTALRM: "SIGVTALRM",
    SIGPROF: "SIGPROF", SIGWINCH: "SIGWINCH", SIGIO: "SIGIO", SIGPWR: "SIGPWR", SIGSYS: "SIGSYS",
]
