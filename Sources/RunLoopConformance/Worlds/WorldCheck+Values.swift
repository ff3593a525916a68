@_spi(Ports) internal import RunLoopCore
internal import TestSupport
internal import Testing

/// An object that a world has. Several checks may have the same world at a time, so each has a value of its own.
private final class Made: Sendable {
    static let read = WorldLocal<Made> { _ in Made() }
    static let replaced = WorldLocal<Made> { _ in Made() }
}

extension WorldCheck {
    static let ofValues = [
        WorldCheck("a value of a world is made once, and its threads share it", values),
        WorldCheck("a value of a world that is set replaces the former one", setValues),
        WorldCheck("the random numbers of a world's threads differ, and are the same when a run is repeated", numbers),
        WorldCheck("a decision is taken as the thread takes it", decisions),
        WorldCheck("a replay is a repeated run, and so is each run on virtual time", repeats),
    ]

    private static func values(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            let found = Log<ObjectIdentifier>()
            let threads = (0..<4).map { _ in
                LoopThread(name: "reader", in: world) { loop in
                    found.append(ObjectIdentifier(Made.read[loop.world]))
                }
            }
            for thread in threads { thread.join() }
            let own = Made.read[world]
            #expect(found.entries == Array(repeating: ObjectIdentifier(own), count: 4))
        }
    }

    private static func setValues(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            let former = Weak(Made.replaced[world])
            let next = Made()
            Made.replaced.set(next, in: world)
            #expect(Made.replaced[world] === next && former.isGone)
        }
    }

    private static func numbers(_ subject: WorldSubject) throws {
        // Two runs, and perhaps the repetition of each.
        var former: Set<UInt64>?
        for _ in 0..<2 {
            try subject.run { driver, world in
                let source = RunLoop.RandomNumbers.source[world]
                let drawn = Log<UInt64>()
                for _ in 0..<50 { drawn.append(source()) }
                LoopThread(name: "drawer", in: world) { loop in
                    for _ in 0..<50 { drawn.append(loop.randomNumbers.next()) }
                }.join()
                let numbers = Set(drawn.entries)
                #expect(numbers.count == 100)
                if let former, world.isVirtual || world.isReplay { #expect(numbers == former) }
                former = numbers
            }
        }
    }

    private static func decisions(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            for decision in [true, false, false, true] { #expect(world.decides(decision) == decision) }
        }
    }

    private static func repeats(_ subject: WorldSubject) throws {
        try subject.run { driver, world in
            if world.isReplay || world.isVirtual { #expect(world.isRepeatable) }
            #expect(!world.isReplay || !world.isVirtual)
        }
    }
}
