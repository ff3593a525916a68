import CShims
import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopUnix
import Synchronization
import Testing

/// A number that threads add to.
final class Counter: Sendable {
    private let state = Atomic(0)

    var value: Int { state.load(ordering: .acquiring) }

    @discardableResult
    func add(_ amount: Int = 1) -> Int {
        state.add(amount, ordering: .acquiringAndReleasing).newValue
    }
}

/// A thread without a loop of its own making, which blocks no signal: it is started from a thread of Dispatch's, and
/// those block all.
final class PlainThread: Sendable {
    let handle: pthread_t

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    init(_ body: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(Body(body)).toOpaque()
        let status = pthread_create(
            &thread, nil,
            { context in
                var none = sigset_t()
                sigemptyset(&none)
                pthread_sigmask(SIG_SETMASK, &none, nil)
                Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
                return nil
            }, context)
        precondition(status == 0, "no thread (errno \(status))")
        handle = thread
    }

    /// To be called exactly once.
    func join() {
        pthread_join(handle, nil)
    }
}

/// Calls `body` on a thread of its own, whose loop nobody else has used, and waits for it.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
    let result = Locked<Result?>(nil)
    PlainThread {
        let value = body()
        result.withLock { $0 = value }
    }.join()
    return result.withLock { $0! }
}

/// Waits, giving up after a time that no test needs, until something is so.
func eventually(_ isSo: () -> Bool) -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(120)
    while !isSo() {
        guard clock.now < end else { return false }
        usleep(200)
    }
    return true
}

/// Who handles a signal: the number of the handler's address, 0 for the default, 1 for nobody.
func disposition(of signal: Signal) -> UInt {
    var action = sigaction()
    precondition(sigaction(signal.rawValue, nil, &action) == 0)
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: UInt.self)
}

/// Forks, by the C library's function of that name; Swift's Glibc module hides it, and these processes know what they do.
func forkProcess(_ function: String) -> Int32 {
    let symbol = dlsym(nil, function)
    precondition(symbol != nil, "the C library has no \(function)")
    return unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)()
}

/// Calls `body` in a child process, which ends right after it, and tells how: 0 if all was well.
func statusOfChild(by function: String = "fork", _ body: () -> Void) -> Int32 {
    let child = forkProcess(function)
    precondition(child >= 0, "no process (errno \(errno))")
    if child == 0 {
        alarm(20)
        body()
        _exit(0)
    }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
    return status
}
