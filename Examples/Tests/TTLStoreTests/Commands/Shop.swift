import RunLoopKit
import RunLoopSimulation
import Testing

@testable import TTLStore

/// A store on virtual time, which begins in 2026, with inline commands as its interface.
struct Shop {
    let simulation: Simulation
    let store: Store
    let commands: Commands
    let session = Session(number: 1)
    /// The unsolicited messages sent to sessions.
    let notices = Notices()

    final class Notices {
        var text = ""
    }

    /// The milliseconds since 1970 at the beginning.
    static let begin = 1_790_000_000_000

    /// - Parameters:
    ///   - loop: the loop of this store; by default the simulation's.
    ///   - table: the keys, if they are shared.
    init(
        _ simulation: Simulation, _ settings: Commands.Settings = Commands.Settings(), on loop: RunLoop? = nil,
        sharing table: Table? = nil, _ audience: Audience = Audience()
    ) {
        self.simulation = simulation
        let loop = loop ?? simulation.loop
        store = Shop.store(on: loop, table)
        let channels = Channels(audience, on: loop)
        commands = Commands(store: store, channels: channels, settings: settings)
        store.expiryHandler = { channels.tellAll(ofExpired: $0) }
        commands.channels.send = { [notices] in notices.text += Shop.readable($1.bytes) }
    }

    static func store(_ simulation: Simulation) -> Store { store(on: simulation.loop, nil) }

    private static func store(on loop: RunLoop, _ table: Table?) -> Store {
        let clock = WallClock(loop: loop) { Int64(begin) * 1_000_000 + loop.now.nanoseconds }
        return Store(on: loop, sharing: table ?? Table(isShared: false), clock: clock)
    }

    /// Returns the reply to an inline command, with a bar for the end of a line.
    func callAsFunction(_ line: String) -> String { reply(to: Array((line + "\n").utf8)) }

    func reply(to request: [UInt8]) -> String {
        var parser = RequestParser()
        var reply = Reply()
        request.withUnsafeBufferPointer { bytes in
            _ = commands.perform(all: bytes, &parser, session, &reply)
        }
        return Shop.readable(reply.bytes)
    }

    private static func readable(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false)
            .joined(separator: "|")
    }
}

/// Talks to a store; each line is a command and its reply.
func talk(
    settings: Commands.Settings = Commands.Settings(), _ lines: (String, String)..., then: (Shop) -> Void = { _ in }
) {
    withSimulation { simulation in
        let shop = Shop(simulation, settings)
        for (command, reply) in lines { #expect(shop(command) == reply, "\(command)") }
        then(shop)
    }
}
