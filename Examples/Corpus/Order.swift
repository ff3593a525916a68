import RunLoopKit
import RunLoopSimulation

extension Program {
    static let order = [
        usedBeforeReady, lostEdit, stopOvertakesStart, movedSubscriber, twoConsumers, lostLastLine, replyToTheNext,
    ]

    /// Fails if the user has taken all of its steps before the loader continues after its only one.
    private static let usedBeforeReady = Program(
        name: "used-before-ready",
        bug: "A task with much to do first relies on another one's having loaded the settings."
    ) { simulation, isMended in
        let loading = Waiters()
        var (settings, found) = (nil as String?, nil as String?)
        simulation.loop.task(name: "loader") {
            await work(1)
            settings = "loaded"
            loading.wakeAll()
        }
        simulation.loop.task(name: "user") {
            await work(20)
            while isMended && settings == nil { try await loading.wait() }
            found = settings
        }
        simulation.runUntilIdle()
        try check(found != nil, "there were no settings yet")
    }

    /// Fails if the editor changes the text for the last time while the saver writes, and does not count the change
    /// before the saver has looked at the count.
    private static let lostEdit = Program(
        name: "lost-edit", bug: "An editor counts a change a step after it has made it; a saver relies on the count."
    ) { simulation, isMended in
        var (text, changes, isDirty, saved) = (0, 0, false, 0)
        simulation.loop.task(name: "editor") {
            for _ in 1...4 {
                await work(6)
                text += 1
                isDirty = true
                if !isMended { await work(1) }
                changes += 1
            }
        }
        simulation.loop.task(name: "saver") {
            for _ in 1...6 {
                await work(4)
                guard isDirty else { continue }
                let (copy, seenChanges) = (text, changes)
                await work(1)
                saved = copy
                if changes == seenChanges { isDirty = false }
            }
        }
        simulation.runUntilIdle()
        if isDirty { saved = text }
        try check(saved == text, "text \(text) counts as saved, and \(saved) was")
    }

    /// Fails if the controller's turn comes twice, and the worker's after each, before the helper's.
    private static let stopOvertakesStart = Program(
        name: "stop-overtakes-start", bug: "A stop ends what runs, and a start that is under way runs on after it."
    ) { simulation, isMended in
        let (worker, helper, controller) = (makeThread("worker"), makeThread("helper"), makeThread("controller"))
        let (isRunning, isStopped, ticks) = (Shared(false), Shared(false), Shared(0))
        worker.perform { _ in
            // The helper has the requirements of a start.
            helper.perform { _ in
                worker.perform { loop in
                    guard !isMended || !isStopped.value else { return }
                    isRunning.value = true
                    loop.perform(afterDelay: .seconds(1)) {
                        if isRunning.value { ticks.value += 1 }
                    }
                }
            }
        }
        controller.perform { _ in
            // The worker confirms its start, and is stopped.
            worker.perform { _ in
                controller.perform { _ in
                    worker.perform { _ in
                        isStopped.value = true
                        isRunning.value = false
                    }
                }
            }
        }
        simulation.advance(by: .seconds(2))
        try check(ticks.value == 0, "it ticks after its stop")
    }

    /// Fails if the first subscriber moves to the end when an event has been delivered to it, and not to all others
    /// yet.
    private static let movedSubscriber = Program(
        name: "moved-subscriber", bug: "A publisher counts along its subscribers, who come and go during a delivery."
    ) { simulation, isMended in
        var subscribers = [0, 1, 2]
        var received = [0, 0, 0]
        simulation.loop.task(name: "publisher") {
            for _ in 1...2 {
                if isMended {
                    for subscriber in subscribers {
                        received[subscriber] += 1
                        await work(1)
                    }
                } else {
                    var place = 0
                    while place < subscribers.count {
                        received[subscribers[place]] += 1
                        await work(1)
                        place += 1
                    }
                }
                await work(6)
            }
        }
        simulation.loop.task(name: "subscriber 0") {
            await work(6)
            // The subscriber subscribes to something else as well.
            subscribers.append(subscribers.remove(at: 0))
        }
        simulation.runUntilIdle()
        try check(received == [2, 2, 2], "of two events the subscribers have received \(received)")
    }

    /// Fails if one consumer takes an item, and the other one takes the next and applies it first.
    private static let twoConsumers = Program(
        name: "two-consumers", bug: "Two tasks share the work of a queue whose items are to be applied in order."
    ) { simulation, isMended in
        let turn = TaskLock()
        var (items, applied) = ([1, 2, 3, 4, 5, 6], [] as [Int])
        for number in 1...2 {
            simulation.loop.task(name: "consumer \(number)") {
                while !items.isEmpty {
                    if isMended { try await turn.lock() }
                    if !items.isEmpty {
                        let item = items.removeFirst()
                        await work(1)
                        applied.append(item)
                    }
                    if isMended { turn.unlock() }
                    await work(1)
                }
            }
        }
        simulation.runUntilIdle()
        try check(applied == [1, 2, 3, 4, 5, 6], "applied were \(applied)")
    }

    /// Fails if the logger's turn comes twice, and the main loop's in between, before the formatter's.
    private static let lostLastLine = Program(
        name: "lost-last-line", bug: "A log is closed by a way that is not the one by which its lines come."
    ) { simulation, isMended in
        let main = simulation.loop.remote
        let (formatter, logger) = (makeThread("formatter"), makeThread("logger"))
        let (isClosed, lines) = (Shared(false), Shared(0))
        formatter.perform { _ in
            logger.perform { _ in
                if !isClosed.value { lines.value += 1 }
            }
        }
        @Sendable func close() {
            logger.perform { _ in
                // The logger announces that it will close, and receives the order to close.
                main.perform { _ in
                    logger.perform { _ in isClosed.value = true }
                }
            }
        }
        if isMended {
            formatter.perform { _ in close() }
        } else {
            close()
        }
        simulation.runUntilIdle()
        try check(isClosed.value && lines.value == 1, "the log was closed before its last line came")
    }

    /// Fails if the dialler's turn comes twice, and the main loop's after each, before the calculator's.
    private static let replyToTheNext = Program(
        name: "reply-to-the-next", bug: "An answer goes to whoever has the asker's line when it is ready."
    ) { simulation, isMended in
        let main = simulation.loop.remote
        let (calculator, dialler) = (makeThread("calculator"), makeThread("dialler"))
        // The caller that has the line, and the callers that received the answer for caller 1.
        let (caller, answered) = (Shared<Int?>(1), Shared<[Int]>([]))
        main.perform { _ in
            calculator.perform { _ in
                main.perform { _ in
                    guard let present = caller.value, !isMended || present == 1 else { return }
                    answered.value.append(present)
                }
            }
            // Caller 1 rings off. When the line is free, caller 2 dials.
            dialler.perform { _ in
                main.perform { _ in
                    caller.value = nil
                    dialler.perform { _ in
                        main.perform { _ in caller.value = 2 }
                    }
                }
            }
        }
        simulation.runUntilIdle()
        try check(!answered.value.contains(2), "caller 2 was given the answer for caller 1")
    }
}
