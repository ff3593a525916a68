// error: XX
import RunLoopSimulation

func simulateInAsync() async {
    withSimulation { $0.advance(by: .seconds(1)) }
}
