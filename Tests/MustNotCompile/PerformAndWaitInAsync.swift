// error: instance method 'performAndWait' is unavailable from asynchronous contexts; it blocks the calling thread; use perform(inModes:_:) and a continuation
import RunLoopKit

func waitFor(_ remote: RunLoop.Remote) async throws -> Int {
    try remote.performAndWait { _ in 42 }
}
