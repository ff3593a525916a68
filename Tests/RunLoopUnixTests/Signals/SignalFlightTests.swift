import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("A signal that writes a flight", .timeLimit(.minutes(15)))
struct SignalFlightTests {
    @Test("the signal writes the file in whatever mode the loop runs, again and again, and reports an error")
    func writes() async {
        await #expect(processExitsWith: .success) {
            onThread {
                let directory = TemporaryDirectory()
                let path = directory["flight"]
                let loop = RunLoop.current
                let recorder = try! FlightRecorder(loop, events: 256)
                var (written, errors) = (0, [FlightError?]())
                try! recorder.memory.write(to: path, on: .user1, in: loop) { errors.append($0) }
                try! recorder.memory.write(to: directory.path, on: .user2, in: loop) { errors.append($0) }
                precondition(loop.run(in: .default) == .finished)
                let panel = CustomSource { _ in written += 1 }
                panel.name = "panel"
                loop.add(panel, forMode: "panel")
                for count in 1...2 {
                    panel.signal()
                    loop.run(in: "panel", until: .distantPast)
                    raise(SIGUSR1)
                    loop.run(in: "panel", until: .distantPast)
                    let flight = try! Flight(contentsOf: path)
                    let panels = flight.usage.first { $0.handler?.name == "panel" }
                    precondition(panels?.calls == count, "\(flight)")
                }
                raise(SIGUSR2)
                loop.run(in: "panel", until: .distantPast)
                precondition(errors == [nil, nil, .file(directory.path, errno: EISDIR)], "\(errors)")
                withExtendedLifetime(recorder) {}
            }
        }
    }
}
