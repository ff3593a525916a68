import CShims
import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// A parameter for modes also accepts a mode in a variable, and literals keep their meaning.
@Suite("A mode where modes are taken")
struct SingleModeTests {
    private final class Target {
        private let log: Log<String>

        init(_ log: Log<String>) {
            self.log = log
        }

        func call() { log("target") }
        func call(with text: String) { log(text) }
    }

    @Test("every item is added to a mode in a variable, found in it and removed from it")
    func items() throws {
        let panel: RunLoop.Mode = "panel"
        try withSimulation { simulation in
            let loop = simulation.loop
            let descriptor = rlk_eventfd()
            defer { close(descriptor) }
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
            let observer = Observer(activities: .all) { _, _ in }
            let source = CustomSource()
            let ready = DescriptorSource(fileDescriptor: descriptor, events: .readable) { _, _ in }
            let link = DisplayLink { _ in }
            loop.add(timer, forMode: panel)
            loop.add(observer, forMode: panel)
            loop.add(source, forMode: panel)
            try loop.add(ready, forMode: panel)
            link.add(to: loop, forMode: panel)
            for item in [timer, observer, source, ready, link] as [RunLoop.Item] {
                #expect(loop.contains(item, inMode: panel))
                #expect(!loop.contains(item, inMode: .default))
            }
            link.remove(from: loop, forMode: panel)
            for item in [timer, observer, source, ready] as [RunLoop.Item] { loop.remove(item, fromMode: panel) }
            #expect(loop.dump().items.isEmpty)
        }
    }

    @Test("every kind of block runs in a mode in a variable, and in no other")
    func blocks() {
        let panel: RunLoop.Mode = "panel"
        let log = Log<String>()
        withSimulation { simulation in
            let loop = simulation.loop
            let target = Target(log)
            loop.perform(inModes: panel) { log("block") }
            loop.remote.perform(inModes: panel) { _ in log("posted") }
            loop.perform(afterDelay: .seconds(1), inModes: panel) { log("delayed") }
            loop.perform(at: loop.now + .seconds(2), inModes: panel) { log("dated") }
            loop.perform(Target.call, target: target, afterDelay: .seconds(3), inModes: panel)
            loop.perform(Target.call(with:), target: target, with: "argument", afterDelay: .seconds(4), inModes: panel)
            loop.run(in: .default, until: loop.now + .seconds(5))
            #expect(log.entries == [])
            loop.run(in: panel)
            #expect(log.entries == ["block", "posted", "delayed", "dated", "target", "argument"])
        }
    }

    @Test("literals go on to mean sets of modes")
    func literals() {
        let panel: RunLoop.Mode = "panel"
        withSimulation { simulation in
            let loop = simulation.loop
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
            loop.add(timer, forMode: .common)
            #expect(loop.contains(timer, inMode: .common))
            #expect(loop.contains(timer, inMode: .default))
            loop.remove(timer, fromMode: "common")
            loop.add(timer, forMode: "panel")
            #expect(loop.contains(timer, inMode: panel))
            loop.add(timer, forMode: [.default, "sheet"])
            #expect(loop.contains(timer, inMode: ["panel", "sheet", .default]))
            loop.remove(timer, fromMode: RunLoop.Modes([panel, RunLoop.Mode.default]))
            #expect(!loop.contains(timer, inMode: "panel"))
            #expect(loop.contains(timer, inMode: "sheet"))
            loop.add(timer, forMode: .every)
            #expect(loop.contains(timer, inMode: .every))
        }
    }
}
