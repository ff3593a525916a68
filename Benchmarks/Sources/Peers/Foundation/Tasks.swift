// The main actor, which the main thread's loop serves, beside the default executor.
import Tasks

let taskWorkloads = TaskWorkloads(home: Home(serial: MainActor.sharedUnownedExecutor), other: Home())
