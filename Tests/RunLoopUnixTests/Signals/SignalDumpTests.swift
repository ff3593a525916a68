import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("A signal that dumps the loop", .timeLimit(.minutes(15)))
struct SignalDumpTests {
    @Test("the signal dumps in whatever mode the loop runs, again and again, and keeps no run from finishing")
    func anyMode() async {
        await #expect(processExitsWith: .success) {
            let texts = onThread {
                var texts: [String] = []
                let loop = RunLoop.current
                try! loop.dump(on: .user1) { texts.append("\($0.runs.map(\.name)) \($0.items.map(\.description))") }
                precondition(loop.run(in: .default) == .finished)
                precondition(loop.run(in: "panel") == .finished)
                let panel = CustomSource()
                panel.name = "panel"
                loop.add(panel, forMode: "panel")
                raise(SIGUSR1)
                loop.run(in: "panel", until: .distantPast)
                let dump = loop.dump()
                let names = dump.items.map { "\($0.name ?? "-") \($0.isEverywhere)" }
                precondition(names == ["panel false", "signal SIGUSR1 true"], "\(names)")
                precondition(dump.keepingAlive("panel").map(\.name) == ["panel"] && dump.keepingAlive(.default) == [])
                // A block posted for a mode that never runs does not prevent the dump.
                loop.add(panel, forMode: .default)
                raise(SIGUSR1)
                loop.run(in: .default, until: .distantPast)
                return texts
            }
            precondition(texts.count == 2, "\(texts)")
            precondition(texts[0].hasPrefix("[\"panel\"] [\"source \\\"panel\\\""), texts[0])
            precondition(texts[1].hasPrefix("[\"default\"]"), texts[1])
        }
    }

    @Test("the signal wakes a sleeping loop, and the dump goes to standard error by default")
    func toStandardError() async throws {
        let result = try await #require(
            processExitsWith: .success, observing: [\.standardErrorContent]
        ) {
            onThread {
                let loop = RunLoop.current
                let remote = loop.remote
                try! loop.dump(on: .user2)
                let timer = Timer(fire: loop.now + .seconds(600), interval: .zero, repeats: false) { _ in }
                timer.name = "far"
                loop.add(timer, forMode: .default)
                let sender = PlainThread {
                    precondition(eventually { remote.isWaiting })
                    // On this thread, so that it has been counted when the call returns.
                    raise(SIGUSR2)
                    remote.stop()
                }
                loop.run(in: .default)
                sender.join()
            }
        }
        let text = String(decoding: result.standardErrorContent, as: UTF8.self)
        #expect(text.contains("run loop at "))
        #expect(text.contains("timer \"far\" (RunLoopUnixTests/SignalDumpTests.swift:"))
        #expect(text.contains("signal SIGUSR2"))
    }

    @Test("a signal that cannot be handled is refused")
    func refused() {
        let error = onThread { #expect(throws: SignalError.self) { try RunLoop.current.dump(on: .kill) } }
        #expect(error != nil)
    }
}
