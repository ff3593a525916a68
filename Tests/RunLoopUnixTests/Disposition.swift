import Glibc
import RunLoopUnix

/// The disposition of a signal: the number of the handler's address, 0 for the default, 1 if it is ignored.
func disposition(of signal: Signal) -> UInt {
    var action = sigaction()
    precondition(sigaction(signal.rawValue, nil, &action) == 0)
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: UInt.self)
}
