// error: instance method 'performAndWait' is unavailable from asynchronous contexts; it blocks the calling thread; await run(inModes:_:)
import RunLoopKit

func waitFor(_ remote: RunLoop.Remote) async throws -> Int {
    try remote.performAndWait { _ in 42 }
}
