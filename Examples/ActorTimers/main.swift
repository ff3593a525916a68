// An actor that lives on a loop, with timers that touch its state.
//
// A player moves on ten times a second, in the default mode; a display shows where it is every half second, in the
// common modes. From 1 s to 2 s the user drags the player to another place: the loop runs in tracking mode, the default
// timer rests, and the display continues. Other tasks await the actor like any other. Everything happens on virtual
// time.

import RunLoopKit
import RunLoopSimulation

actor Player {
    private let home: RunLoop.Executor
    private var place = 0
    private(set) var shown: [Int] = []
    nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }

    init(on home: RunLoop.Executor) {
        self.home = home
    }

    func moveOn() { place += 1 }

    func show(at date: RunLoop.Instant, in mode: RunLoop.Mode) {
        shown.append(place)
        print("\(date)  \(mode)\tat \(place)")
    }

    func drag(to place: Int) { self.place = place }
}

withSimulation { simulation in
    let loop = simulation.loop
    loop.addCommonMode(.tracking)
    let player = Player(on: loop.remote.executor())

    // Timers of the loop fire on the actor's thread, so their blocks may assume its isolation.
    Timer.scheduledTimer(withTimeInterval: .milliseconds(100), repeats: true) { _ in
        player.assumeIsolated { $0.moveOn() }
    }
    loop.add(
        Timer(timeInterval: .milliseconds(500), repeats: true) { _ in
            let (date, mode) = (loop.now, loop.currentMode!)
            player.assumeIsolated { $0.show(at: date, in: mode) }
        }, forMode: .common)

    loop.perform(afterDelay: .seconds(1)) {
        loop.perform(afterDelay: .milliseconds(700), inModes: .common) { player.assumeIsolated { $0.drag(to: 70) } }
        loop.run(in: .tracking, until: loop.now + .seconds(1))
    }

    // A task has to await the actor; on the same loop that needs no change of thread.
    loop.task {
        try await loop.clock.sleep(for: .milliseconds(2_750))
        print("shown so far: \(await player.shown)")
    }
    loop.run(until: loop.now + .seconds(3))
}
