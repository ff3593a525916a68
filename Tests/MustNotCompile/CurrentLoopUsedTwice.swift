// error: sending value of non-Sendable type '() async -> ()' risks causing data races
import RunLoopKit

func useHereAndThere() {
    let loop = RunLoop.current
    Task { loop.stop() }
    loop.run()
}
