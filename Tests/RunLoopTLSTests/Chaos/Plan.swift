import Glibc
import RunLoopTLS
import RunLoopUnix
import TestSupport

/// The plan of one conversation of a storm, known to both of its sides.
struct Plan: Sendable {
    /// The transport of the conversation, and the side that connects.
    enum Way: CaseIterable, Sendable {
        case tcp, unix, tls, framed, relay, tlsRelay, connected, tlsConnected, pair, pipes

        var isTLS: Bool { self == .tls || self == .tlsRelay || self == .tlsConnected }
    }

    /// The peer's action after it has sent its part.
    enum Manner: CaseIterable, Sendable {
        /// The peer ends its side, and reads all answers.
        case polite
        /// The peer closes, and has not read everything.
        case cut
        /// The peer resets.
        case reset
        /// The peer reads nothing more for a while, and closes.
        case stall
        /// The peer sends bytes that TLS does not allow.
        case garbage
        /// The peer sends the beginning of a record, and ends.
        case brokenRecord
        /// The peer sends the beginning of a handshake, and ends.
        case brokenHandshake
        /// The peer sends bytes that TLS does not allow in place of a handshake.
        case noHandshake
    }

    /// The program's treatment of its input.
    enum Conduct: CaseIterable, Sendable {
        case echo, pausing
        case closing, failing, finishing, finishingWriting, flooding
        case closingAtEnd, closingWhenFull, closingWhenDrained
    }

    let number: Int
    let way: Way
    let manner: Manner
    let conduct: Conduct
    /// The peer's bytes: the number of the conversation first, and then random bytes.
    let stream: [UInt8]
    /// The number of bytes that the peer sends before it acts in its manner.
    let peerTurn: Int
    /// The number of bytes that the program receives before it acts in its conduct.
    let programTurn: Int
    /// The number of bytes that the peer sends at a time; from time to time it rests.
    let piece: Int
    let seed: UInt64

    var isPolite: Bool { manner == .polite }
    static let numberSize = 4

    init(_ number: Int, _ random: inout SeededGenerator) {
        self.number = number
        let way = Way.allCases[number % Way.allCases.count]
        self.way = way
        seed = random.next()
        let tlsOnly: [Manner] = [.garbage, .brokenRecord, .brokenHandshake, .noHandshake]
        let manners = Manner.allCases.filter { way.isTLS || !tlsOnly.contains($0) }
        manner = Int.random(in: 0..<3, using: &random) == 0 ? .polite : manners.randomElement(using: &random)!
        conduct =
            manner == .polite || way == .relay || way == .tlsRelay
            ? [.echo, .pausing].randomElement(using: &random)! : Conduct.allCases.randomElement(using: &random)!
        piece = [1, 100, 5_000, 70_000].randomElement(using: &random)!
        let most = piece == 1 ? 300 : 300_000
        let count =
            Int.random(in: 0..<10, using: &random) == 0 ? Self.numberSize : Int.random(in: 10...most, using: &random)
        var stream = (0..<Self.numberSize).map { UInt8(truncatingIfNeeded: number >> (8 * (Self.numberSize - 1 - $0))) }
        if way == .framed { stream = [0, UInt8(Self.numberSize)] + stream }
        while stream.count < count {
            if way == .framed {
                let length = Int.random(in: 0...1_000, using: &random)
                stream += [UInt8(length >> 8), UInt8(length & 255)]
                stream += (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            } else {
                withUnsafeBytes(of: random.next()) { stream += $0 }
            }
        }
        self.stream = stream
        peerTurn = manner == .polite ? stream.count : Int.random(in: 0...stream.count, using: &random)
        programTurn = Int.random(in: 0...stream.count, using: &random)
    }
}

extension Plan: CustomStringConvertible {
    var description: String { "\(number): \(way), \(manner), \(conduct), \(stream.count) bytes" }
}

/// The addresses of the program, and the peers' other needs in a storm.
struct Meeting: Sendable {
    let server: TLSServerContext
    let client: TLSClientContext
    /// The addresses, by the way and by the peers' politeness.
    let addresses: [Plan.Way: [Bool: Endpoint]]
    /// Gives the program its side of two descriptors.
    let give: @Sendable (Plan, ProgramSide) -> Void
    /// Asks the program to connect.
    let call: @Sendable (Plan, Endpoint) -> Void
    let failures: Log<String>
    /// Set once the program has gone away in the middle.
    let isOver: Flag
}

/// The descriptors of the program's side, which are closed if they are never taken.
final class ProgramSide: @unchecked Sendable {
    private var descriptors: (input: Int32, output: Int32)?

    init(input: Int32, output: Int32) {
        descriptors = (input, output)
    }

    deinit {
        guard let (input, output) = descriptors else { return }
        close(input)
        if output != input { close(output) }
    }

    func take() -> (input: Int32, output: Int32) {
        defer { descriptors = nil }
        return descriptors!
    }
}
