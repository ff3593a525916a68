// Why a timer stops while the user drags, and the cure.
//
// Two clocks tick once a second; one is scheduled in the default mode, as `scheduledTimer` does it, and one in the
// common modes. At 2.5 s the user begins to drag, and the loop runs in tracking mode until 5.5 s. Everything happens on
// virtual time, and so ends at once; with `--real` the same takes eight seconds.

import RunLoopKit
import RunLoopSimulation

func show(in loop: RunLoop, drag: (_ start: RunLoop.Instant, _ end: RunLoop.Instant) -> Void) {
    let start = loop.now
    func say(_ what: String) {
        let tenths = (loop.now - start).nanoseconds / 100_000_000
        print("\(tenths / 10).\(tenths % 10) s  \(loop.currentMode?.name ?? "-")\t\(what)")
    }

    loop.addCommonMode(.tracking)
    for (name, modes) in [("default only", RunLoop.Modes.default), ("common", .common)] {
        let timer = Timer(fire: start + .seconds(1), interval: .seconds(1), repeats: true) { timer in
            say("\(name) ticks" + (timer.missedFires > 0 ? ", and has missed \(timer.missedFires)" : ""))
        }
        loop.add(timer, forMode: modes)
    }
    drag(start + .milliseconds(2_500), start + .milliseconds(5_500))
    loop.run(in: .default, until: start + .seconds(8))
}

if CommandLine.arguments.contains("--real") {
    let loop = RunLoop.current
    show(in: loop) { start, end in
        loop.perform(at: start) { loop.run(in: .tracking, until: end) }
    }
} else {
    withSimulation { simulation in
        show(in: simulation.loop) { simulation.drag(from: $0, until: $1) }
    }
}
