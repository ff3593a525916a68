// In a file of its own, because declarations in main.swift belong to the main actor.
import RunLoopKit
import Tasks

private let executor = RunLoop.current.remote.executor()
private let clock = RunLoop.current.remote.clock()
private let otherThread = LoopThread(name: "other")

let taskWorkloads = TaskWorkloads(
    home: Home(serial: executor.serial.asUnownedSerialExecutor(), task: executor.task),
    other: Home(serial: otherThread.remote.executor().serial.asUnownedSerialExecutor()),
    sleep: { try? await clock.sleep(for: .nanoseconds(Int64($0))) })
