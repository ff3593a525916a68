// error: passing closure as a 'sending' parameter risks causing data races
import RunLoopKit

func runInTwoTasks(loop: RunLoop) async {
    await withTaskGroup(of: Void.self) { group in
        group.addTask { loop.stop() }
        group.addTask { loop.stop() }
    }
}
