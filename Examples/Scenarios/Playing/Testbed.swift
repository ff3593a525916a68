internal import Glibc
package import RunLoopKit
internal import RunLoopSimulation

/// The place of a play: a loop of its own, on virtual time or on the system's clock, with times counted in nanoseconds
/// from the start.
package final class Testbed {
    /// The clock to play on.
    package enum Clock: Sendable, Equatable {
        /// Virtual time: exact, and over at once.
        case virtual
        /// The system's clock; every time is multiplied by the scale.
        case real(scale: Double)
    }

    package let loop: RunLoop
    /// The testbed's times, for use on any thread of the play.
    package let times: Times

    private let yieldToOthers: () -> Void

    private init(
        loop: RunLoop, scale: Double, yield: @escaping () -> Void, work: @escaping @Sendable (Duration) -> Void
    ) {
        self.loop = loop
        yieldToOthers = yield
        times = Times(clock: loop.remote, start: loop.now, scale: scale, workOnClock: work)
    }

    /// Creates the testbed of a simulation, whose time begins now. Call on the simulation's main thread.
    convenience init(_ simulation: Simulation) {
        self.init(loop: simulation.loop, scale: 1, yield: simulation.yield) { simulation.spend($0) }
    }

    /// Calls `play` with a testbed whose time begins now, and returns when everything has been played and taken down.
    package static func open(on clock: Clock, _ play: @escaping @Sendable (Testbed) -> Void) {
        switch clock {
        case .virtual:
            withSimulation { play(Testbed($0)) }
        case .real(let scale):
            LoopThread(name: "player") { play(Testbed(loop: $0, scale: scale, yield: {}, work: sleep)) }.join()
        }
    }

    /// Lets the other threads of the play run the work that is due now. On the real clock they do so anyway.
    func yield() {
        yieldToOthers()
    }

    /// The relation between times from the start and times of the loop's clock.
    package struct Times: Sendable {
        fileprivate let clock: RunLoop.Remote
        fileprivate let start: RunLoop.Instant
        fileprivate let scale: Double
        fileprivate let workOnClock: @Sendable (Duration) -> Void

        /// The time, from the start. Any thread.
        package var now: Int64 { time(of: clock.now) }

        /// Keeps the calling thread busy for a while.
        package func work(for nanoseconds: Int64) {
            if nanoseconds > 0 { workOnClock(duration(nanoseconds)) }
        }

        /// Returns the instant on the loop's clock.
        package func instant(_ nanoseconds: Int64) -> RunLoop.Instant {
            start + duration(nanoseconds)
        }

        /// Returns the duration on the loop's clock.
        package func duration(_ nanoseconds: Int64) -> Duration {
            .nanoseconds(scale == 1 ? nanoseconds : Int64((Double(nanoseconds) * scale).rounded()))
        }

        /// Returns the time of an instant, from the start.
        package func time(of instant: RunLoop.Instant) -> Int64 {
            let elapsed = instant.nanoseconds - start.nanoseconds
            return scale == 1 ? elapsed : Int64((Double(elapsed) / scale).rounded())
        }
    }
}

@Sendable
private func sleep(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    var asked = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var left = timespec()
    while nanosleep(&asked, &left) != 0 { asked = left }
}
