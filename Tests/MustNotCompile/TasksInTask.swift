// error: passing closure as a 'sending' parameter risks causing data races
import RunLoopKit

func cancelElsewhere(loop: RunLoop) async throws {
    try await loop.withTasks { tasks in
        Task { tasks.cancel() }
    }
}
