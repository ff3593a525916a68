internal import Glibc
@_spi(Ports) internal import RunLoopCore
internal import TestSupport
internal import Testing

extension DriverCheck {
    static let ofDescriptors = [
        DriverCheck("a quiet descriptor is not reported", quiet),
        DriverCheck("a readable descriptor ends a wait and is reported", readable),
        DriverCheck("a descriptor that becomes readable during a wait ends it", becomesReadable),
        DriverCheck("a writable descriptor is reported, a full one is not", writable),
        DriverCheck("a descriptor can be watched for both events, and each is reported if ready", both),
        DriverCheck("a descriptor is reported again as long as it is ready", levelTriggered),
        DriverCheck("a look without sleeping finds a ready descriptor", look),
        DriverCheck("a descriptor that was ready before it was watched is reported", readyBefore),
        DriverCheck("nothing is reported after unwatch", unwatched),
        DriverCheck("an event collected before unwatch is not taken back", collected),
        DriverCheck("a descriptor can be watched again after unwatch, many times", watchedAgain),
        DriverCheck("a token that was never watched may be unwatched", unwatchUnknown),
        DriverCheck("a hang-up is reported to a reader", hangUpOfWriter),
        DriverCheck("a hang-up is reported to a writer", hangUpOfReader),
        DriverCheck("the end of a socket is reported to a reader", hangUpOfSocket),
        DriverCheck("a closed descriptor is refused by name, and the driver keeps working", closed),
        DriverCheck("a regular file and a directory are refused by name", notPollable),
        DriverCheck("descriptors that are closed while they are watched disturb no other", closedEarly),
        DriverCheck("a number that was closed while it was watched can be watched after unwatch", numberAgain),
        DriverCheck("two tokens of one descriptor are both reported, and end one by one", twoTokens),
        DriverCheck("two tokens of one descriptor may watch for different things", readerAndWriter),
        DriverCheck("of many descriptors exactly the ready ones are reported", many),
    ]

    private static let patience = Duration.seconds(3600)

    private static func quiet(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(0))
            let deadline = driver.now + .milliseconds(2)
            #expect(driver.look(for: .milliseconds(2)) == [])
            #expect(driver.now >= deadline)
        }
    }

    private static func readable(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(0))
            pipe.write()
            #expect(driver.look(for: Self.patience) == [Found(0, .readable)])
        }
    }

    private static func becomesReadable(_ subject: DriverSubject) throws {
        try subject.run { driver, world in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            let writeEnd = pipe.writer
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(0))
            let thread = LoopThread(name: "writer", in: world) { loop in
                _ = loop.driver.wait(until: loop.now + .milliseconds(10), into: ReadyQueue())
                _ = write(writeEnd, "x", 1)
            }
            #expect(driver.look(for: Self.patience) == [Found(0, .readable)])
            thread.join()
        }
    }

    private static func writable(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            try driver.watch(pipe.writer, for: .writable, token: SourceToken(0))
            #expect(driver.look(for: Self.patience) == [Found(0, .writable)])
            pipe.fill()
            #expect(driver.look(for: .milliseconds(2)) == [])
            pipe.drain()
            #expect(driver.look(for: Self.patience) == [Found(0, .writable)])
        }
    }

    private static func both(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let sockets = DescriptorPair(.socketPair)
            defer { withExtendedLifetime(sockets) {} }
            try driver.watch(sockets.reader, for: [.readable, .writable], token: SourceToken(0))
            #expect(driver.look(for: Self.patience) == [Found(0, .writable)])
            sockets.write()
            #expect(driver.look(for: Self.patience) == [Found(0, [.readable, .writable])])
        }
    }

    private static func levelTriggered(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(0))
            pipe.write()
            for _ in 0..<3 { #expect(driver.look(for: Self.patience) == [Found(0, .readable)]) }
            pipe.drain()
            #expect(driver.look(for: .milliseconds(2)) == [])
        }
    }

    private static func look(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(0))
            pipe.write()
            let ready = ReadyQueue()
            #expect(driver.wait(until: .distantPast, into: ready) == .woke)
            #expect(ready.count == 1)
        }
    }

    private static func readyBefore(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            pipe.write()
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(0))
            #expect(driver.look(for: Self.patience) == [Found(0, .readable)])
        }
    }

    private static func unwatched(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(0))
            pipe.write()
            driver.unwatch(SourceToken(0))
            let deadline = driver.now + .milliseconds(2)
            #expect(driver.look(for: .milliseconds(2)) == [])
            #expect(driver.now >= deadline)
        }
    }

    private static func collected(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(0))
            pipe.write()
            let ready = ReadyQueue()
            _ = driver.wait(until: .distantPast, into: ready)
            driver.unwatch(SourceToken(0))
            #expect(ready.count == 1)
        }
    }

    private static func watchedAgain(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            pipe.write()
            for version in 0..<100 as Range<UInt32> {
                let token = SourceToken(slot: 0, version: version)
                try driver.watch(pipe.reader, for: .readable, token: token)
                let found = driver.look(for: Self.patience)
                driver.unwatch(token)
                let rest = driver.look()
                let expected = [Found(token: token, events: .readable)]
                #expect(found == expected && rest == [])
                // A hundred failures would hide those of other requirements.
                if found != expected || rest != [] { break }
            }
        }
    }

    private static func unwatchUnknown(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            driver.unwatch(SourceToken(3))
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(0))
            pipe.write()
            #expect(driver.look(for: Self.patience) == [Found(0, .readable)])
        }
    }

    private static func hangUpOfWriter(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(0))
            pipe.closeWriter()
            for _ in 0..<2 { #expect(driver.look(for: Self.patience) == [Found(0, .readable)]) }
        }
    }

    private static func hangUpOfReader(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            pipe.fill()
            try driver.watch(pipe.writer, for: .writable, token: SourceToken(0))
            #expect(driver.look() == [])
            pipe.closeReader()
            for _ in 0..<2 { #expect(driver.look(for: Self.patience) == [Found(0, .writable)]) }
        }
    }

    private static func hangUpOfSocket(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let sockets = DescriptorPair(.socketPair)
            defer { withExtendedLifetime(sockets) {} }
            try driver.watch(sockets.reader, for: .readable, token: SourceToken(0))
            #expect(driver.look() == [])
            sockets.closeWriter()
            #expect(driver.look(for: Self.patience) == [Found(0, .readable)])
        }
    }

    private static func closed(_ subject: DriverSubject) throws {
        try subject.run { driver in
            // A number that no other test can get meanwhile.
            let never: Int32 = 1_000_000
            #expect(throws: DescriptorError.notOpen(never)) {
                try driver.watch(never, for: .readable, token: SourceToken(0))
            }
            #expect(throws: DescriptorError.notOpen(-1)) {
                try driver.watch(-1, for: .readable, token: SourceToken(0))
            }
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            pipe.write()
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(0))
            #expect(driver.look(for: Self.patience) == [Found(0, .readable)])
        }
    }

    private static func notPollable(_ subject: DriverSubject) throws {
        try subject.run { driver in
            for path in ["/proc/self/exe", "/"] {
                let descriptor = open(path, O_RDONLY)
                defer { close(descriptor) }
                #expect(throws: DescriptorError.notPollable(descriptor)) {
                    try driver.watch(descriptor, for: .readable, token: SourceToken(0))
                }
            }
            #expect(driver.look() == [])
        }
    }

    private static func closedEarly(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let (early, pipe) = (DescriptorPair(), DescriptorPair())
            defer { withExtendedLifetime(early) {} }
            try driver.watch(early.reader, for: .readable, token: SourceToken(0))
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(1))
            early.closeReader()
            pipe.write()
            // Whether the closed one is reported depends on the system's call.
            #expect(driver.look(for: Self.patience).contains(Found(1, .readable)))
            driver.unwatch(SourceToken(0))
            #expect(driver.look(for: Self.patience) == [Found(1, .readable)])
            pipe.drain()
            #expect(driver.look(for: .milliseconds(2)) == [])
        }
    }

    private static func numberAgain(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let (early, next) = (DescriptorPair(), DescriptorPair())
            defer { withExtendedLifetime((early, next)) {} }
            try driver.watch(early.reader, for: .readable, token: SourceToken(0))
            // Closes a descriptor and gives its number to another file, before another thread can take the number.
            #expect(dup2(next.reader, early.reader) == early.reader)
            driver.unwatch(SourceToken(0))
            try driver.watch(early.reader, for: .readable, token: SourceToken(1))
            #expect(driver.look(for: .milliseconds(2)) == [])
            next.write()
            #expect(driver.look(for: Self.patience) == [Found(1, .readable)])
        }
    }

    private static func twoTokens(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            pipe.write()
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(0))
            try driver.watch(pipe.reader, for: .readable, token: SourceToken(1))
            #expect(driver.look(for: Self.patience) == [Found(0, .readable), Found(1, .readable)])
            driver.unwatch(SourceToken(0))
            #expect(driver.look(for: Self.patience) == [Found(1, .readable)])
            driver.unwatch(SourceToken(1))
            #expect(driver.look() == [])
        }
    }

    private static func readerAndWriter(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let sockets = DescriptorPair(.socketPair)
            defer { withExtendedLifetime(sockets) {} }
            try driver.watch(sockets.reader, for: .readable, token: SourceToken(0))
            try driver.watch(sockets.reader, for: .writable, token: SourceToken(1))
            #expect(driver.look(for: Self.patience) == [Found(1, .writable)])
            sockets.write()
            #expect(driver.look(for: Self.patience) == [Found(0, .readable), Found(1, .writable)])
            driver.unwatch(SourceToken(1))
            #expect(driver.look(for: Self.patience) == [Found(0, .readable)])
        }
    }

    private static func many(_ subject: DriverSubject) throws {
        try subject.run { driver in
            let pipes = (0..<100).map { _ in DescriptorPair() }
            defer { withExtendedLifetime(pipes) {} }
            for (slot, pipe) in pipes.enumerated() {
                try driver.watch(pipe.reader, for: .readable, token: SourceToken(UInt32(slot)))
            }
            for slot in stride(from: 0, to: 100, by: 7) { pipes[slot].write() }
            let expected = stride(from: 0, to: 100, by: 7).map { Found(UInt32($0), .readable) }
            #expect(driver.look(for: Self.patience) == expected)
        }
    }
}
