import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Descriptor sources")
struct DescriptorSourceTests {
    @Test("a source is called when its descriptor can be read, and ends run(mode:before:) (R72)")
    func readable() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { source, events in
                #expect(source.fileDescriptor == pair.reader)
                #expect(events == .readable)
                pair.read()
                log("R\(loop.now.word)")
            }
            try loop.add(source, forMode: .default)
            #expect(!loop.isEmpty(.default))
            loop.timer(20, every: 20) { _ in pair.write() }
            #expect(loop.run(mode: .default, before: ms(100)))
            #expect(log.text == "R20")
            #expect(loop.run(mode: .default, before: ms(30)))
            #expect(log.text == "R20")
            #expect(loop.now == ms(30))
            #expect(loop.run(in: .default, until: ms(100), returnAfterSourceHandled: true) == .handledSource)
            #expect(log.text == "R20 R40")
            #expect(loop.statistics.sources == 2)
            loop.checkInvariants()
        }
    }

    @Test("a source is called when its descriptor can be written, and only for events that it asked for")
    func writable() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair(.socketPair))
            pair.fill()
            let both: DescriptorEvents = [.readable, .writable]
            let source = DescriptorSource(fileDescriptor: pair.writer, events: both) { source, events in
                #expect(events == .writable)
                log("W\(loop.now.word)")
                source.invalidate()
            }
            try loop.add(source, forMode: .default)
            loop.timer(20) { _ in pair.drain() }
            #expect(loop.run(in: .default, until: ms(100)) == .finished)
            #expect(log.text == "W20")
        }
    }

    @Test("the interest is level-triggered: unread input is reported in every pass")
    func levelTriggered() throws {
        try withObservedLoop { _, loop, log in
            let pair = DescriptorPair()
            pair.write(3)
            let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { source, _ in
                pair.read()
                log("R")
            }
            try loop.add(source, forMode: .default)
            #expect(loop.run(in: .default, until: ms(10)) == .timedOut)
            #expect(log.text == "E BT BW AW R BT BW AW R BT BW AW R BT BW AW X")
        }
    }

    @Test("everything that was found ready is served in one pass, in the order of adding")
    func allInOnePass() throws {
        try withObservedLoop { _, loop, log in
            let pairs = [DescriptorPair(), DescriptorPair(.socketPair), DescriptorPair()]
            for (index, pair) in pairs.enumerated() {
                pair.write()
                let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in
                    pair.read()
                    log("R\(index)")
                }
                try loop.add(source, forMode: .default)
            }
            #expect(loop.run(mode: .default, before: ms(10)))
            #expect(log.text == "E BT BW AW R0 R1 R2 X")
            #expect(loop.statistics.sources == 3)
            #expect(loop.now == ms(0))
        }
    }

    @Test("due timers fire before the descriptors of the pass")
    func timersFirst() throws {
        try withObservedLoop { _, loop, log in
            let pair = DescriptorPair()
            pair.write()
            let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in log("R") }
            try loop.add(source, forMode: .default)
            loop.timer(0) { _ in log("T") }
            #expect(loop.run(mode: .default, before: ms(10)))
            #expect(log.text == "E BT T R X")
        }
    }

    @Test("a timer that re-arms itself for now does not starve descriptors")
    func noStarvation() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            pair.write()
            let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in
                log("R")
                loop.stop()
            }
            try loop.add(source, forMode: .default)
            loop.timer(0, every: 1000) { timer in
                log("T")
                timer.fireDate = loop.now
            }
            #expect(loop.run(in: .default, until: ms(10)) == .stopped)
            #expect(log.text == "T R")
        }
    }

    @Test("the end of the stream counts as readable")
    func hangUp() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { source, events in
                #expect(events == .readable)
                #expect(pair.read() == 0)
                log("end at \(loop.now.word)")
                source.invalidate()
            }
            try loop.add(source, forMode: .default)
            loop.timer(20) { _ in pair.closeWriter() }
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "end at 20")
        }
    }

    @Test("a source in a common mode follows modes made common later (R18)")
    func commonModes() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in
                pair.read()
                log("R:\(loop.currentMode!)")
            }
            try loop.add(source, forMode: .common)
            #expect(loop.isEmpty(.tracking))
            loop.addCommonMode(.tracking)
            #expect(!loop.isEmpty(.tracking))
            pair.write()
            loop.run(in: .tracking, until: ms(10))
            #expect(log.text == "R:tracking")
            loop.remove(source, forMode: .common)
            #expect(loop.isEmpty(.tracking))
            #expect(loop.isEmpty(.default))
            loop.checkInvariants()
        }
    }

    // MARK: Ends

    @Test("a source cancelled in its own handler is freed")
    func cancelledInHandler() throws {
        try withSimulation { simulation in
            let (loop, pair) = (simulation.loop, DescriptorPair())
            weak var weakSource: DescriptorSource?
            weak var weakToken: Token?
            do {
                let token = Token()
                let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { source, _ in
                    source.invalidate()
                    #expect(!source.isValid)
                    token.touch()
                    #expect(weakToken != nil)
                }
                (weakSource, weakToken) = (source, token)
                try loop.add(source, forMode: .default)
            }
            #expect(weakSource != nil)
            pair.write()
            #expect(loop.run(in: .default, until: ms(10)) == .finished)
            #expect(weakToken == nil)
            #expect(weakSource == nil)
            loop.checkInvariants()
        }
    }

    @Test("a source cancelled while its event is queued is not called")
    func cancelledWhileQueued() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let (first, second) = (DescriptorPair(), DescriptorPair())
            first.write()
            second.write()
            let victim = DescriptorSource(fileDescriptor: second.reader, events: .readable) { _, _ in log("victim") }
            let killer = DescriptorSource(fileDescriptor: first.reader, events: .readable) { source, _ in
                log("killer")
                victim.invalidate()
                source.invalidate()
            }
            try loop.add(killer, forMode: .default)
            try loop.add(victim, forMode: .default)
            #expect(loop.run(in: .default, until: ms(10)) == .finished)
            #expect(log.text == "killer")
            loop.checkInvariants()
        }
    }

    @Test("a source removed while its event is queued is not called, and reports again once it is added")
    func removedWhileQueued() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let (first, second) = (DescriptorPair(), DescriptorPair())
            first.write()
            second.write()
            let victim = DescriptorSource(fileDescriptor: second.reader, events: .readable) { source, _ in
                log("victim")
                source.invalidate()
            }
            let remover = DescriptorSource(fileDescriptor: first.reader, events: .readable) { source, _ in
                log("remover")
                loop.remove(victim, forMode: .default)
                source.invalidate()
            }
            try loop.add(remover, forMode: .default)
            try loop.add(victim, forMode: .default)
            #expect(loop.run(in: .default, until: ms(10)) == .finished)
            #expect(log.text == "remover")
            #expect(victim.isValid)
            try loop.add(victim, forMode: .default)
            #expect(loop.run(in: .default, until: ms(10)) == .finished)
            #expect(log.text == "remover victim")
        }
    }

    @Test("a reused slot does not receive its predecessor's event")
    func reusedSlot() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let (first, second, quiet) = (DescriptorPair(), DescriptorPair(), DescriptorPair())
            first.write()
            second.write()
            let victim = DescriptorSource(fileDescriptor: second.reader, events: .readable) { _, _ in log("victim") }
            let successor = DescriptorSource(fileDescriptor: quiet.reader, events: .readable) { _, _ in
                log("successor")
            }
            let killer = DescriptorSource(fileDescriptor: first.reader, events: .readable) { source, _ in
                log("killer")
                first.read()
                let slot = victim.token!.slot
                victim.invalidate()
                #expect(throws: Never.self) { try loop.add(successor, forMode: .default) }
                #expect(successor.token!.slot == slot)
            }
            try loop.add(killer, forMode: .default)
            try loop.add(victim, forMode: .default)
            #expect(loop.run(in: .default, until: ms(10)) == .timedOut)
            #expect(log.text == "killer")
            quiet.write()
            loop.run(mode: .default, before: ms(20))
            #expect(log.text == "killer successor")
            loop.checkInvariants()
        }
    }

    @Test("an invalid source cannot be added, and is forgotten by its mode")
    func invalidSource() throws {
        try withSimulation { simulation in
            let (loop, pair) = (simulation.loop, DescriptorPair())
            let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in }
            try loop.add(source, forMode: [.default, .tracking])
            source.invalidate()
            source.invalidate()
            #expect(loop.isEmpty(.default))
            #expect(loop.isEmpty(.tracking))
            try loop.add(source, forMode: .default)
            #expect(loop.isEmpty(.default))
            loop.checkInvariants()
        }
    }

    @Test("the end of the loop releases its sources")
    func endOfLoop() throws {
        let pair = DescriptorPair()
        weak var kept: DescriptorSource?
        try withSimulation { simulation in
            let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in }
            kept = source
            try simulation.loop.add(source, forMode: .default)
        }
        #expect(kept == nil)
    }

    // MARK: Errors

    @Test("a descriptor that is not open is refused with a typed error, and the source is not scheduled")
    func closedDescriptor() {
        withSimulation { simulation in
            let loop = simulation.loop
            let pair = DescriptorPair()
            // So high that no other test opens it meanwhile.
            let descriptor = fcntl(pair.reader, F_DUPFD, 900)
            #expect(descriptor >= 900)
            close(descriptor)
            for closed in [descriptor, -1] {
                let source = DescriptorSource(fileDescriptor: closed, events: .readable) { _, _ in }
                #expect(throws: DescriptorError.notOpen(closed)) { try loop.add(source, forMode: .default) }
                #expect(loop.isEmpty(.default))
                #expect(source.isValid)
                loop.checkInvariants()
            }
        }
    }

    @Test("a regular file and a directory are refused with a typed error")
    func regularFile() {
        withSimulation { simulation in
            let loop = simulation.loop
            for path in ["/proc/self/exe", "/"] {
                let descriptor = open(path, O_RDONLY)
                #expect(descriptor >= 0)
                let source = DescriptorSource(fileDescriptor: descriptor, events: .readable) { _, _ in }
                #expect(throws: DescriptorError.notPollable(descriptor)) { try loop.add(source, forMode: .default) }
                #expect(loop.isEmpty(.default))
                loop.checkInvariants()
                close(descriptor)
            }
        }
    }
}
