import RunLoopKit
import RunLoopSimulation

extension Program {
    static let threads = [toldAfterwards, wronglyFedWatchdog, lostInReload]

    /// Fails if the subscriber leaves at the very date of an event.
    private static let toldAfterwards = Program(
        name: "told-afterwards", bug: "A subscriber unsubscribes with another thread, whose events are under way to it."
    ) { simulation, isMended in
        let loop = simulation.loop
        let (main, publisher) = (loop.remote, makeThread("publisher"))
        let (isSubscribed, isClosed, isTold) = (Shared(true), Shared(false), Shared(false))
        publisher.perform { loop in
            for second in 1...3 {
                loop.perform(afterDelay: .seconds(second)) {
                    guard isSubscribed.value else { return }
                    main.perform { _ in
                        if isMended && isClosed.value { return }
                        if isClosed.value { isTold.value = true }
                    }
                }
            }
        }
        let moments: [Duration] = [.milliseconds(2_500), .milliseconds(1_500), .milliseconds(2_000)]
        loop.perform(afterDelay: simulation.choice("when it unsubscribes", of: moments)) {
            publisher.perform { _ in isSubscribed.value = false }
            isClosed.value = true
        }
        simulation.runUntilIdle()
        try check(!isTold.value, "the subscriber got an event after it had closed")
    }

    /// Fails if the job takes ten seconds.
    private static let wronglyFedWatchdog = Program(
        name: "wrongly-fed-watchdog", bug: "The watchdog of a worker thread is fed by the main loop, which lives on."
    ) { simulation, isMended in
        let (worker, watchdog) = (makeThread("worker"), makeThread("watchdog"))
        let (fed, bites) = (Shared(simulation.now), Shared(0))
        let times: [Duration] = [.milliseconds(10), .seconds(1), .seconds(10)]
        let time = simulation.choice("how long a job takes", of: times)
        worker.perform { loop in loop.perform(afterDelay: .milliseconds(2_500)) { simulation.spend(time) } }
        watchdog.perform { loop in
            let look = Timer(timeInterval: .seconds(1), repeats: true) { _ in
                if loop.now - fed.value > .seconds(5) { bites.value += 1 }
            }
            loop.add(look, forMode: .default)
        }
        let feeding = Timer(timeInterval: .seconds(1), repeats: true) { _ in
            if isMended {
                worker.perform { loop in fed.value = loop.now }
            } else {
                fed.value = simulation.now
            }
        }
        simulation.loop.add(feeding, forMode: .default)
        simulation.advance(by: .seconds(20))
        try check((bites.value > 0) == (time > .seconds(5)), "the watchdog has bitten \(bites.value) times")
    }

    /// Fails if the client's job is added while the reader reads the settings.
    private static let lostInReload = Program(
        name: "lost-in-reload", bug: "The jobs that a reload keeps are those that there were when it began."
    ) { simulation, isMended in
        let main = simulation.loop.remote
        let (reader, client) = (makeThread("reader"), makeThread("client"))
        // Jobs below 10 are from the settings.
        let jobs = Shared([1, 2, 10])
        reader.perform { _ in
            // The reader announces that the settings have changed.
            main.perform { _ in
                let present = jobs.value
                reader.perform { _ in
                    let settings = [1, 3]
                    main.perform { _ in
                        jobs.value = settings + (isMended ? jobs.value : present).filter { $0 >= 10 }
                    }
                }
            }
        }
        client.perform { _ in
            // The client asks for a number.
            main.perform { _ in
                let number = 10 + jobs.value.count
                client.perform { _ in
                    main.perform { _ in jobs.value.append(number) }
                }
            }
        }
        simulation.runUntilIdle()
        try check(jobs.value.count == 4, "the jobs are \(jobs.value)")
    }
}
