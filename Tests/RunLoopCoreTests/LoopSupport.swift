import RunLoopKit
import RunLoopSimulation
import TestSupport

@_spi(Ports) @testable import RunLoopCore

extension RunLoop {
    /// Adds a timer that fires first at `milliseconds`; once, or every `period`.
    @discardableResult
    func timer(
        _ milliseconds: Int64, every period: Int64? = nil, in modes: Modes = .default,
        _ body: @escaping (Timer) -> Void
    ) -> Timer {
        let timer = Timer(
            fire: ms(milliseconds), interval: .milliseconds(period ?? 0), repeats: period != nil, block: body)
        add(timer, forMode: modes)
        return timer
    }

    /// Writes E, BT, BW, AW and X into `log`. BS is left out: it always follows BT.
    @discardableResult
    func observe(_ log: Log<String>, in modes: Modes = .default, prefix: String = "") -> Observer {
        let names: [RunLoop.Activity: String] = [
            .entry: "E", .beforeTimers: "BT", .beforeWaiting: "BW", .afterWaiting: "AW", .exit: "X",
        ]
        let observer = Observer(activities: RunLoop.Activity.all.subtracting(.beforeSources)) { _, activity in
            log(prefix + names[activity]!)
        }
        add(observer, forMode: modes)
        return observer
    }

    /// Calls `body` at the given activity.
    @discardableResult
    func observe(
        _ activity: RunLoop.Activity, in modes: Modes = .default, repeats: Bool = true, order: Int = 0,
        _ body: @escaping () -> Void
    ) -> Observer {
        let observer = Observer(activities: activity, repeats: repeats, order: order) { _, _ in body() }
        add(observer, forMode: modes)
        return observer
    }

    /// Adds a source that does nothing, so that its mode is not empty.
    @discardableResult
    func keepAlive(in modes: Modes = .default) -> CustomSource {
        let source = CustomSource()
        add(source, forMode: modes)
        return source
    }
}

/// Runs `body` on virtual time, with a log into which the loop's observers of the default mode write.
func withObservedLoop(_ body: (Simulation, RunLoop, Log<String>) throws -> Void) rethrows {
    try withSimulation { simulation in
        let log = Log<String>()
        simulation.loop.observe(log)
        try body(simulation, simulation.loop, log)
        simulation.loop.checkInvariants()
    }
}
