import RunLoopKit
import RunLoopSimulation

#if RunLoopGLib
import RunLoopGLib
#endif
#if RunLoopLogging
import RunLoopLogging
#endif
#if RunLoopMetrics
import RunLoopMetrics
#endif
#if RunLoopNIO
import RunLoopNIO
#endif
#if RunLoopServiceLifecycle
import RunLoopServiceLifecycle
#endif

withSimulation { simulation in
    var fires = 0
    Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in fires += 1 }
    #if RunLoopMetrics
    let metrics = LoopMetrics(RunLoop.current.remote, name: "dependent")
    defer { withExtendedLifetime(metrics) {} }
    #endif
    #if RunLoopGLib
    _ = try? GLibContext(on: RunLoop.current)
    #endif
    #if RunLoopNIO
    _ = RunLoop.current.nio
    #endif
    #if RunLoopServiceLifecycle
    _ = DaemonService { _ in fatalError("not run") }
    #endif
    simulation.advance(by: .seconds(60))
    precondition(fires == 60)
}
