import Glibc
import RunLoopUnix

/// Returns the disposition of a signal: the handler's address as a number, 0 for the default, 1 if the signal is
/// ignored.
func disposition(of signal: Signal) -> UInt {
    var action = sigaction()
    precondition(sigaction(signal.rawValue, nil, &action) == 0)
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: UInt.self)
}
