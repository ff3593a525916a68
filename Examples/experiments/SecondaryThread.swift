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
            let note = { [unowned loop] (event: String, mark: ScenarioEvent.Kind?) in
                observations.withLock { $0.append(.init(t: times.time(of: loop.now), event: event, mark: mark)) }
            }
            // The objects that the thread keeps until it ends: the proxy, and the owner behind it.
            withExtendedLifetime(ThreadMain(note)) { main in
                let timer = Timer(
                    timeInterval: times.duration(2_000_000_000), target: main.proxy!, selector: Proxy.tick,
                    repeats: true)
                timer.invalidationHandler = { note("T is invalidated", .invalidated(name: "T")) }
                loop.add(timer, forMode: .default)
                loop.run(in: .default)
                note("the loop ends", nil)
                note("the thread ends", nil)
            }
        }.join()
    }
    return observations.withLock { $0 }
}

/// The lanes of its picture.
let proxiedTimer = Scenario(
    duration: 9_000_000_000,
    timers: [
        .init(
            name: "T", first: 2_000_000_000, interval: 2_000_000_000, repeats: true,
            target: .init(name: "proxy", hold: .strong))
    ])

private typealias Note = (_ event: String, _ mark: ScenarioEvent.Kind?) -> Void

private final class ThreadMain {
    private(set) var proxy: Proxy?
    private var owner: Owner?

    init(_ note: @escaping Note) {
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
    private let note: Note

    init(_ owner: Owner, _ note: @escaping Note) {
        self.owner = owner
        self.note = note
    }

    deinit {
        note("proxy deinits", .deinit(name: "proxy"))
    }

    func tick(_ timer: Timer) {
        owner?.tick(timer)
    }
}

private final class Owner {
    private var num = 0
    private let note: Note

    init(_ note: @escaping Note) {
        self.note = note
    }

    deinit {
        note("owner deinits", nil)
    }

    func tick(_ timer: Timer) {
        note("T fires, num = \(num)", .tick(name: "T", count: num + 1, mode: "default", remaining: nil))
        num += 1
        if num > 3 { timer.invalidate() }
    }
}
