import RunLoopKit
import RunLoopSimulation

withSimulation { simulation in
    var fires = 0
    Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in fires += 1 }
    simulation.advance(by: .seconds(60))
    precondition(fires == 60)
}
