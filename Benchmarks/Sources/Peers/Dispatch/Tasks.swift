// Plain tasks and actors, on the default executor.
import Tasks

let taskWorkloads = TaskWorkloads(home: Home(), sleep: { try? await Task.sleep(nanoseconds: $0) })
