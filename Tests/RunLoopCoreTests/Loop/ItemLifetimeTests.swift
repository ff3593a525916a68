import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

/// Properties shared by all items.
@Suite("The life of an item")
struct ItemLifetimeTests {
    /// Makes one item of a kind, whose handler keeps it and the token, and adds it to a loop.
    struct Maker: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let make: @Sendable (RunLoop, Token) throws -> RunLoop.Item
    }

    static let makers = [
        Maker(testDescription: "a timer") { loop, token in
            nonisolated(unsafe) var own: Timer?
            let timer = Timer(fire: ms(1000), interval: .seconds(1), repeats: true) { _ in
                withExtendedLifetime((own, token)) {}
            }
            own = timer
            loop.add(timer, forMode: .default)
            return timer
        },
        Maker(testDescription: "a display link") { loop, token in
            nonisolated(unsafe) var own: DisplayLink?
            let link = DisplayLink { _ in withExtendedLifetime((own, token)) {} }
            own = link
            link.add(to: loop, forMode: .default)
            return link
        },
        Maker(testDescription: "an observer") { loop, token in
            nonisolated(unsafe) var own: Observer?
            let observer = Observer(activities: .entry) { _, _ in withExtendedLifetime((own, token)) {} }
            own = observer
            loop.add(observer, forMode: .default)
            return observer
        },
        Maker(testDescription: "a custom source") { loop, token in
            nonisolated(unsafe) var own: CustomSource?
            let source = CustomSource { _ in withExtendedLifetime((own, token)) {} }
            own = source
            loop.add(source, forMode: .default)
            source.signal()
            return source
        },
        Maker(testDescription: "a descriptor source") { loop, token in
            let pair = DescriptorPair()
            nonisolated(unsafe) var own: DescriptorSource?
            let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in
                withExtendedLifetime((own, token, pair)) {}
            }
            own = source
            try loop.add(source, forMode: .default)
            return source
        },
    ]

    @Test(
        "the end of its loop releases an item that its own handler keeps, and the handler's captures",
        arguments: makers)
    func endOfLoop(maker: Maker) throws {
        weak var weakItem: RunLoop.Item?
        weak var weakToken: Token?
        var invalidations = 0
        try withSimulation { simulation in
            let token = Token()
            let item = try maker.make(simulation.loop, token)
            item.invalidationHandler = { invalidations += 1 }
            (weakItem, weakToken) = (item, token)
            simulation.loop.run(in: .tracking, until: ms(10))
        }
        #expect(weakItem == nil)
        #expect(weakToken == nil)
        #expect(invalidations == 1)
    }

    @Test(
        "the end of its thread releases an item that its own handler keeps, and the handler's captures",
        arguments: makers)
    func endOfThread(maker: Maker) {
        let ends = Counter()
        let thread = LoopThread { loop in
            do { _ = try maker.make(loop, Token { ends.add() }) } catch { Issue.record(error) }
            loop.stop()
            loop.remote.stop()
        }
        thread.join()
        #expect(ends.value == 1)
    }

    @Test(
        "an item that is invalid is ignored, and the trace says which and why", arguments: makers)
    func ignored(maker: Maker) throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var ignored: [String] = []
            loop.trace = { if case .ignored(let what) = $0 { ignored.append(what) } }
            let item = try maker.make(loop, Token())
            item.name = "it"
            #expect(item.description.hasPrefix("\(item.kind) \"it\" (RunLoopCoreTests/ItemLifetimeTests.swift:"))
            item.invalidate()
            #expect(!item.isValid)
            loop.enrol(item, .default)
            #expect(ignored == ["\(item) was added, but it is invalid; make a new one"])
            #expect(!loop.contains(item, forMode: .default))
        }
    }

    @Test("an item that is added to a second loop traps, with its name and place")
    func otherLoop() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func addTwice() {
                withSimulation { first in
                    let timer = first.loop.timer(10) { _ in }
                    timer.name = "poll"
                    withSimulation { second in second.loop.add(timer, forMode: .default) }
                }
            }
            addTwice()
        }
        let isNamed = says("timer \"poll\" (RunLoopCoreTests/LoopSupport.swift:", result)
        let isSaid = says("was added to a loop, but it is in another one; remove it there first", result)
        #expect(isNamed && isSaid)
    }

    @Test(
        "an item is served in every mode, and keeps each from being empty, if it is added to every mode",
        arguments: makers)
    func everyMode(maker: Maker) throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let item = try maker.make(loop, Token())
            loop.enrol(item, .every)
            for mode in ["early", .default, .tracking] as [RunLoop.Mode] {
                #expect(loop.isEmpty(mode) == !item.keepsAlive)
            }
            #expect(loop.contains(item, forMode: .every))
            #expect(loop.contains(item, forMode: "early"))
            loop.remove(item, forMode: [.every, .default])
            #expect(loop.isEmpty("early") && loop.isEmpty(.default))
            #expect(item.loop == nil)
            loop.checkInvariants()
            // An item in no loop is only released by invalidation, if its handler keeps it.
            item.invalidate()
        }
    }

    @Test("an item that another one removes at the end of the loop leaves the loop once")
    func removedAtEnd() {
        withSimulation { simulation in
            let loop = simulation.loop
            let (source, observer) = (CustomSource(), Observer(activities: .entry) { _, _ in })
            source.cancelHandler = { _, _ in observer.invalidate() }
            loop.add(source, forMode: .default)
            loop.add(observer, forMode: .default)
            loop.tearDown()
            #expect(loop.untimed.observerCount == 0)
        }
    }

    @Test("a remote stops any item from another thread", arguments: makers)
    func remote(maker: Maker) throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let item = try maker.make(loop, Token())
            let keepAlive = loop.keepAlive()
            let remote = RunLoop.ItemRemote<RunLoop.Item>(link: item.link)
            let thread = LoopThread(name: "other") { _ in remote.invalidate() }
            loop.run(in: .default, until: ms(1))
            #expect(!item.isValid)
            #expect(item.loop == nil)
            thread.join()
            keepAlive.invalidate()
        }
    }
}
