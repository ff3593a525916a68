@_spi(Ports) import RunLoopCore
import TestSupport
import Testing

@testable import RunLoopLibevent

@Suite("libevent: the order of reports", .timeLimit(.minutes(15)))
struct DescriptorOrderTests {
    @Test("a descriptor that becomes ready after a wait comes before those that the wait has reported")
    func missedWait() throws {
        let descriptors = Descriptors(count: 3)
        defer { descriptors.end() }
        try descriptors.watchAll()
        for place in 0..<3 { descriptors.write(place) }
        #expect(descriptors.look() == [0, 1, 2])

        // Two are ready again at once. The third one misses the wait.
        for place in 0..<3 { descriptors.read(place) }
        for place in 0..<2 { descriptors.write(place) }
        #expect(descriptors.look() == [0, 1])

        descriptors.write(2)
        for place in 0..<2 {
            descriptors.read(place)
            descriptors.write(place)
        }
        for _ in 0..<3 { #expect(descriptors.look() == [2, 0, 1]) }
    }

    @Test("descriptors that are newly ready come first, in the order of becoming ready; the others keep their order")
    func random() throws {
        for seed in 0..<300 { try check(seed: UInt64(seed)) }
    }

    private func check(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let descriptors = Descriptors(count: .random(in: 1...20, using: &generator))
        defer { descriptors.end() }
        try descriptors.watchAll()
        var (latest, arrivals): ([Int], [Int]) = ([], [])
        for step in 0..<60 {
            for _ in 0..<Int.random(in: 0...descriptors.count, using: &generator) {
                let place = Int.random(in: 0..<descriptors.count, using: &generator)
                switch Int.random(in: 0..<8, using: &generator) {
                case 0:
                    // The system and the driver see another descriptor.
                    try descriptors.watchAgain(place)
                    latest.removeAll { $0 == place }
                    arrivals.removeAll { $0 == place }
                case 1...4: descriptors.write(place)
                default: if latest.contains(place) { descriptors.read(place) }
                }
                let isNew = descriptors.isReady(place) && !latest.contains(place) && !arrivals.contains(place)
                if isNew { arrivals.append(place) }
            }
            latest = arrivals + latest.filter(descriptors.isReady)
            arrivals = []
            let found = descriptors.look()
            try #require(found == latest, "seed \(seed), step \(step)")
        }
    }
}

/// Pipes that a driver watches, and the bytes in them.
private final class Descriptors {
    private let driver = try! LibeventDriver(waker: EventWaker())
    private let pipes: [DescriptorPair]
    private var bytes: [Int]
    private var versions: [UInt32]

    init(count: Int) {
        pipes = (0..<count).map { _ in DescriptorPair() }
        bytes = Array(repeating: 0, count: count)
        versions = Array(repeating: 0, count: count)
    }

    var count: Int { pipes.count }

    func isReady(_ place: Int) -> Bool { bytes[place] > 0 }

    func write(_ place: Int) {
        pipes[place].write()
        bytes[place] += 1
    }

    /// Reads all bytes.
    func read(_ place: Int) {
        pipes[place].drain()
        bytes[place] = 0
    }

    func watchAll() throws {
        for place in 0..<count { try driver.watch(pipes[place].reader, for: .readable, token: token(place)) }
    }

    func watchAgain(_ place: Int) throws {
        driver.unwatch(token(place))
        versions[place] += 1
        try driver.watch(pipes[place].reader, for: .readable, token: token(place))
    }

    func end() {
        for place in 0..<count { driver.unwatch(token(place)) }
    }

    /// Returns the reports of a wait that does not sleep, in order.
    func look() -> [Int] {
        let ready = ReadyQueue()
        _ = driver.wait(until: .distantPast, into: ready)
        var places: [Int] = []
        while let (token, _) = ready.popFirst() {
            #expect(token == self.token(Int(token.slot)))
            places.append(Int(token.slot))
        }
        return places
    }

    private func token(_ place: Int) -> SourceToken { SourceToken(slot: UInt32(place), version: versions[place]) }
}
