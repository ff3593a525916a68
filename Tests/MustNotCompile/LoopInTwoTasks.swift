// error: XX
import RunLoopKit

func runInTwoTasks(loop: RunLoop) async {
    await withTaskGroup(of: Void.self) { group in
        group.addTask { loop.stop() }
        group.addTask { loop.stop() }
    }
}
