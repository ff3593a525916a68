import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Modes")
struct ModeTests {
    @Test("equal names are the same mode, in every loop (R7)")
    func names() {
        #expect(RunLoop.Mode("panel") == "panel")
        #expect(RunLoop.Mode("panel") != RunLoop.Mode("panels"))
        #expect(RunLoop.Mode("panel").name == "panel")
        #expect(RunLoop.Mode("default") == .default)
        #expect(RunLoop.Mode("tracking") == .tracking)
        #expect(RunLoop.Modes("common") == .common)
        #expect(RunLoop.Modes("panel") == ["panel"])
    }

    @Test("a process may name more modes than a word has bits")
    func manyModes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let modes = (0..<200).map { RunLoop.Mode("one of many \($0)") }
            let timer = loop.timer(10, every: 10, in: RunLoop.Modes(modes.map { RunLoop.Modes($0) })) { _ in
                log(loop.currentMode!.name)
            }
            loop.timer(5, in: RunLoop.Modes(modes[150])) { _ in log("only here") }
            for mode in [modes[0], modes[63], modes[64], modes[150], modes[199]] {
                loop.run(in: mode, until: loop.now + .milliseconds(10))
                loop.checkInvariants()
            }
            let names = [modes[0], modes[63], modes[64], modes[150], modes[199]].map(\.name)
            #expect(log.entries == names.prefix(3) + ["only here"] + names.suffix(2))
            loop.remove(timer, forMode: RunLoop.Modes(modes[199]))
            #expect(loop.isEmpty(modes[199]))
            #expect(!loop.isEmpty(modes[198]))
            loop.checkInvariants()
        }
    }

    @Test("only items of the running mode take part; the others are held, not lost (R8)")
    func onlyTheRunningMode() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10) { _ in log("default timer") }
            loop.timer(10, in: .tracking) { _ in log("tracking timer") }
            let source = CustomSource { _ in log("default source") }
            loop.add(source, forMode: .default)
            source.signal()
            loop.perform { log("default block") }
            loop.run(in: .tracking)
            #expect(log.entries == ["tracking timer"])
            loop.run(in: .default, until: ms(20))
            #expect(log.entries == ["tracking timer", "default block", "default source", "default timer"])
        }
    }

    @Test("observers do not keep a mode alive, and are not called in an empty one (R10)")
    func observersDoNotCount() {
        withObservedLoop { _, loop, log in
            #expect(loop.isEmpty(.default))
            #expect(loop.run(in: .default, until: ms(10)) == .finished)
            #expect(log.text == "")
        }
    }

    @Test("a timer keeps a mode alive however far away it is, a source though never signalled (R9, R11)")
    func whatCounts() {
        withSimulation { simulation in
            let loop = simulation.loop
            let timer = Timer(fire: .distantFuture, interval: .zero, repeats: false) { _ in }
            loop.add(timer, forMode: .default)
            #expect(!loop.isEmpty(.default))
            timer.invalidate()
            #expect(loop.isEmpty(.default))
            let source = loop.keepAlive()
            #expect(!loop.isEmpty(.default))
            source.invalidate()
            #expect(loop.isEmpty(.default))
            loop.checkInvariants()
        }
    }

    @Test("the common modes begin as the default mode alone (R16, R25)")
    func commonIsDefault() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive(in: .common)
            #expect(!loop.isEmpty(.default))
            #expect(loop.isEmpty(.tracking))
        }
    }

    @Test("an item added to common is in every common mode, also those made common later (R17, R18)")
    func commonItems() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.addCommonMode("panel")
            loop.timer(10, every: 10, in: .common) { _ in log("T:\(loop.currentMode!)") }
            let source = CustomSource { _ in log("S:\(loop.currentMode!)") }
            loop.add(source, forMode: .common)
            loop.observe(.entry, in: .common) { log("E:\(loop.currentMode!)") }
            loop.run(in: "panel", until: ms(10))
            loop.addCommonMode(.tracking)
            loop.checkInvariants()
            source.signal()
            loop.run(in: .tracking, until: ms(20))
            #expect(log.text == "E:panel T:panel E:tracking S:tracking T:tracking")
        }
    }

    @Test("a mode that is made common twice changes nothing (R19)")
    func commonTwice() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let source = CustomSource()
            source.scheduleHandler = { _, mode in log("schedule:\(mode)") }
            loop.add(source, forMode: .common)
            loop.addCommonMode(.tracking)
            loop.addCommonMode(.tracking)
            loop.addCommonMode(.default)
            #expect(log.text == "schedule:default schedule:tracking")
            loop.checkInvariants()
        }
    }

    @Test("removing from common affects only items added through common (R20)")
    func removeFromCommon() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.addCommonMode(.tracking)
            let direct = loop.timer(10) { _ in }
            loop.remove(direct, forMode: .common)
            #expect(loop.contains(direct, forMode: .default))

            let both = loop.timer(10) { _ in }
            loop.add(both, forMode: .common)
            #expect(loop.contains(both, forMode: [.default, .tracking, .common]))
            loop.remove(both, forMode: .common)
            #expect(!loop.contains(both, forMode: .default))
            #expect(!loop.contains(both, forMode: .tracking))
            #expect(!loop.contains(both, forMode: .common))
            #expect(both.isValid)
            loop.checkInvariants()
        }
    }

    @Test("removing from one common mode leaves the others, and the item a common one (R21)")
    func removeFromOneCommonMode() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.addCommonMode(.tracking)
            let timer = loop.timer(10, in: .common) { _ in }
            loop.remove(timer, forMode: .default)
            #expect(!loop.contains(timer, forMode: .default))
            #expect(loop.contains(timer, forMode: .tracking))
            #expect(loop.contains(timer, forMode: .common))
            loop.addCommonMode("panel")
            #expect(loop.contains(timer, forMode: "panel"))
            #expect(!loop.contains(timer, forMode: .default))
            loop.checkInvariants()
        }
    }

    @Test("a common item that was removed from every common mode joins modes made common later (R21)")
    func commonItemInNoMode() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10, in: .common) { _ in log("T") }
            let timer = loop.timer(10, in: .common) { _ in log("U") }
            loop.remove(timer, forMode: .default)
            loop.run(in: .default, until: ms(20))
            #expect(log.text == "T")
            loop.addCommonMode(.tracking)
            #expect(loop.run(in: .tracking) == .finished)
            #expect(log.text == "T U")
        }
    }

    @Test("an observer removed from one common mode continues in the others (R21)")
    func observerRemovedFromOne() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.addCommonMode(.tracking)
            let observer = loop.observe(.entry, in: .common) { log(loop.currentMode!.name) }
            loop.remove(observer, forMode: .default)
            for mode in [RunLoop.Mode.default, .tracking] {
                loop.perform(inModes: RunLoop.Modes(mode)) {}
                loop.run(in: mode)
            }
            #expect(log.text == "tracking")
            loop.checkInvariants()
        }
    }

    @Test("containment in common asks whether the item is a common one (R22)")
    func containsCommon() {
        withSimulation { simulation in
            let loop = simulation.loop
            let direct = loop.timer(10) { _ in }
            let common = loop.timer(10, in: .common) { _ in }
            #expect(!loop.contains(direct, forMode: .common))
            #expect(loop.contains(common, forMode: .common))
            #expect(loop.contains(common, forMode: .default))
        }
    }

    @Test("an item in default and in common fires once per due time (R23)")
    func defaultAndCommon() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10, every: 10, in: [.default, .common]) { _ in log("T\(loop.now.word)") }
            loop.add(timer, forMode: .default)
            loop.add(timer, forMode: .common)
            let source = CustomSource { _ in log("S") }
            loop.add(source, forMode: .common)
            loop.add(source, forMode: .default)
            source.signal()
            loop.observe(.entry, in: [.common, .default]) { log("E") }
            loop.run(in: .default, until: ms(20))
            #expect(log.text == "E S T10 T20")
            loop.checkInvariants()
        }
    }

    @Test("default-mode timers rest while the loop is in tracking, common ones continue (R25)")
    func tracking() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.addCommonMode(.tracking)
            loop.timer(10, every: 10) { _ in log("d\(loop.now.word)") }
            loop.timer(10, every: 10, in: .common) { _ in log("c\(loop.now.word)") }
            simulation.drag(from: ms(15), until: ms(45))
            loop.run(in: .default, until: ms(60))
            #expect(log.text == "d10 c10 c20 c30 c40 d45 c50 d50 c60 d60")
        }
    }

    @Test("a mode switch inside a pass fires only timers of the inner mode")
    func switchInsidePass() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10) { _ in
                log("A<")
                loop.run(in: .tracking, until: loop.now)
                log("A>")
            }
            loop.timer(10) { _ in log("default") }
            loop.timer(10, in: .tracking) { _ in log("tracking") }
            loop.timer(10, in: [.default, .tracking]) { _ in log("both") }
            loop.run(in: .default)
            #expect(log.text == "A< tracking both A> default")
        }
    }
}
