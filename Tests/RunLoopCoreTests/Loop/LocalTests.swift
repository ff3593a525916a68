import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Values of a loop's own")
struct LocalTests {
    /// Calls a block when it is released.
    private final class Ending {
        private let block: () -> Void

        init(_ block: @escaping () -> Void = {}) {
            self.block = block
        }

        deinit {
            block()
        }
    }

    private static let number = RunLoop.Local { _ in 1 }
    private static let ending = RunLoop.Local<Ending?> { _ in nil }

    @Test("a value is made once for each loop, and can be replaced")
    func values() {
        withSimulation { simulation in
            let loop = simulation.loop
            #expect(loop[Self.number] == 1)
            loop[Self.number] += 1
            #expect(loop[Self.number] == 2)
            LoopThread(name: "other") { loop in #expect(loop[Self.number] == 1) }.join()
        }
    }

    @Test("a value that is replaced may ask for others while it goes, and for its successor")
    func replaced() {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = Log<String>()
            loop[Self.ending] = Ending {
                loop[Self.number] += 1
                log("\(loop[Self.ending] == nil)")
            }
            loop[Self.ending] = nil
            #expect(log.entries == ["true"])
            #expect(loop[Self.number] == 2)
        }
    }

    @Test("at the end of a loop a value may ask for others, and for values bound to the loop, while it is released")
    func ended() {
        let log = Log<String>()
        withSimulation { _ in
            LoopThread(name: "other") { loop in
                let bound = LoopBound(Ending { log("bound") }, loop: loop)
                loop[Self.ending] = Ending { [unowned loop] in
                    withExtendedLifetime(bound) {}
                    loop[Self.number] += 1
                    // A value that is made meanwhile is released too.
                    loop[Self.ending] = Ending { log("second") }
                    log("first")
                }
            }.join()
        }
        #expect(log.entries.sorted() == ["bound", "first", "second"])
    }
}
