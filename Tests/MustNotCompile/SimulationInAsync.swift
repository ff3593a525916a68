// error: 'withSimulation' is unavailable from asynchronous contexts; a simulation runs on one thread
import RunLoopSimulation

func simulateInAsync() async {
    withSimulation { $0.advance(by: .seconds(1)) }
}
