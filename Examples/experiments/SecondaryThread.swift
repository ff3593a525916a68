import RunLoopKit
import Scenarios
import Synchronization

/// A repeating timer on a thread of its own, on a proxy that holds its owner weakly. The timer invalidates itself once
/// it has counted beyond three. Then nothing is left in the loop, the run returns, the thread ends, and the objects
/// that it kept are released.
@Sendable
func secondaryThread(on clock: Testbed.Clock) -> [Observation] {
    let observations = Mutex<[Observation]>([])
    Testbed.open(on: clock) { testbed in
        let times = testbed.times
        LoopThread(name: "worker") { loop in
            let note = { [unowned loop] (event: String) in
                observations.withLock { $0.append(.init(t: times.time(of: loop.now), event: event)) }
            }
            // The objects that the thread keeps until it ends: the proxy, and the owner behind it.
            withExtendedLifetime(ThreadMain(note)) { main in
                let timer = Timer(
                    timeInterval: times.duration(2_000_000_000), target: main.proxy!, selector: Proxy.tick,
                    repeats: true)
                timer.invalidationHandler = { note("T is invalidated") }
                loop.add(timer, forMode: .default)
                loop.run(in: .default)
                note("the loop ends")
                note("the thread ends")
            }
        }.join()
    }
    return observations.withLock { $0 }
}

private final class ThreadMain {
    private(set) var proxy: Proxy?
    private var owner: Owner?

    init(_ note: @escaping (String) -> Void) {
        let owner = Owner(note)
        self.owner = owner
        proxy = Proxy(owner, note)
    }

    /// Releases the objects in this order, which an optimizer need not keep for fields.
    deinit {
        proxy = nil
        owner = nil
    }
}

private final class Proxy {
    private weak var owner: Owner?
    private let note: (String) -> Void

    init(_ owner: Owner, _ note: @escaping (String) -> Void) {
        self.owner = owner
        self.note = note
    }

    deinit {
        note("proxy deinits")
    }

    func tick(_ timer: Timer) {
        owner?.tick(timer)
    }
}

private final class Owner {
    private var num = 0
    private let note: (String) -> Void

    init(_ note: @escaping (String) -> Void) {
        self.note = note
    }

    deinit {
        note("owner deinits")
    }

    func tick(_ timer: Timer) {
        note("T fires, num = \(num)")
        num += 1
        if num > 3 { timer.invalidate() }
    }
}
