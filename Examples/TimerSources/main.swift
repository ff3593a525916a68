// Timers that know no modes: one on the main loop and one in the background, while the main loop is busy for a while; a
// delayed block that is cancelled; and a timer with a name.

import Glibc
import RunLoopKit

func showTimerSources() throws {
    let loop = RunLoop.current
    let start = loop.now

    @Sendable func say(_ what: String) {
        let milliseconds = Int((DeliveryQueue.main.now - start) / .milliseconds(1))
        print("\(milliseconds) ms\t\(what)")
    }

    // On the main loop, in every mode. The handler stays on this thread and may capture values that belong to it.
    var ticks = 0
    let onMain = TimerSource(queue: .main, name: "main")
    onMain.schedule(after: .milliseconds(200), repeating: .milliseconds(200))
    onMain.setEventHandler(on: loop) { source in
        ticks += 1
        say("main tick \(ticks), data \(source.data)")
        if ticks == 5 { source.cancel() }
    }
    onMain.setCancelHandler(on: loop) { say("main cancelled") }
    onMain.activate()

    // On a background thread. The handler receives the source, and has to capture nothing.
    let inBackground = TimerSource(queue: .background, name: "background")
    inBackground.schedule(after: .milliseconds(200), repeating: .milliseconds(200))
    inBackground.setEventHandler { source in say("background tick, data \(source.data)") }
    inBackground.setCancelHandler { say("background cancelled") }
    inBackground.activate()

    // The main loop is busy for three dates of the grid: its source ticks once for them, the other one on time.
    loop.asyncAfter(.milliseconds(500)) {
        say("main is busy")
        usleep(600_000)
    }
    loop.asyncAfter(.milliseconds(1_300)) { inBackground.cancel() }

    // A delayed block can be cancelled.
    let item = DeliveryQueue.background.asyncAfter(.milliseconds(300)) { say("never said") }
    DeliveryQueue.main.asyncAfter(.milliseconds(100)) {
        item.cancel()
        say("delayed block \(item.isCancelled ? "cancelled" : "too late")")
    }

    // Two schedules of one name are one timer, with the later schedule and action.
    let timers = TimerRegistry()
    try timers.schedule("greet", interval: .milliseconds(150), repeats: false) { say("never said") }
    try timers.schedule("greet", interval: .milliseconds(300), repeats: false) { say("hello, named timer") }

    // Nothing is left when the source on the main loop has been cancelled. Until then the others must be kept.
    withExtendedLifetime((onMain, inBackground, timers)) { loop.run() }
}

try showTimerSources()
