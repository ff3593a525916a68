import RunLoopKit
import RunLoopSimulation
import Testing

@testable import TTLStore

/// A store on virtual time, which begins in 2026, spoken to in inline commands.
struct Shop {
    let simulation: Simulation
    let store: Store
    let commands: Commands
    let session = Session(number: 1)
    /// What has been sent to sessions that nobody asked for.
    let notices = Notices()

    final class Notices {
        var text = ""
    }

    /// Milliseconds since 1970 at the begin.
    static let begin = 1_790_000_000_000

    init(_ simulation: Simulation, _ settings: Commands.Settings = Commands.Settings()) {
        self.simulation = simulation
        store = Shop.store(simulation)
        commands = Commands(store: store, settings: settings)
        store.expiryHandler = { [channels = commands.channels] in channels.tell(ofExpired: $0) }
        commands.channels.send = { [notices] in notices.text += Shop.readable($1.bytes) }
    }

    static func store(_ simulation: Simulation) -> Store {
        let loop = simulation.loop
        return Store(on: loop, clock: WallClock(loop: loop) { Int64(begin) * 1_000_000 + loop.now.nanoseconds })
    }

    /// The reply to an inline command, with a bar for the end of a line.
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

/// Speaks to a store; each line is a command and its reply.
func talk(
    settings: Commands.Settings = Commands.Settings(), _ lines: (String, String)..., then: (Shop) -> Void = { _ in }
) {
    withSimulation { simulation in
        let shop = Shop(simulation, settings)
        for (command, reply) in lines { #expect(shop(command) == reply, "\(command)") }
        then(shop)
    }
}
