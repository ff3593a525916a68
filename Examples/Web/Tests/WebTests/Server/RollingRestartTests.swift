import Glibc
import Testing

@Suite("Rolling restarts of the daemon", .timeLimit(.minutes(5)))
struct RollingRestartTests {
    @Test(
        "two restarts under load refuse no request, with the next daemon ready before the former stops, or not",
        arguments: [true, false])
    func restarts(overlaps: Bool) throws {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(socket) }
        #expect(listen(socket, 511) == 0)
        let directory = TemporaryDirectory()
        var web = try WebUnderTest(in: directory, socket: socket, log: "log 0")
        let clients = BusyClients(port: web.port, count: 4)
        for number in 1...2 {
            usleep(200_000)
            if overlaps {
                let next = try WebUnderTest(in: directory, socket: socket, log: "log \(number)")
                try web.stop()
                web = next
            } else {
                try web.stop()
                web = try WebUnderTest(in: directory, socket: socket, log: "log \(number)")
            }
        }
        usleep(200_000)
        clients.end()
        try web.stop()
        #expect(clients.failures.flatMap { $0 } == [])
        #expect(clients.answers.allSatisfy { $0 > 10 }, "\(clients.answers)")
        for number in 0...2 {
            let log = String(decoding: directory.contents(of: "log \(number)") ?? [], as: UTF8.self)
            #expect(log.contains("GET / "), "daemon \(number) has answered")
        }
    }
}
