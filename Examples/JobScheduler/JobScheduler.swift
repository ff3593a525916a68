// A daemon that starts commands at their dates, written with tasks: `JobScheduler [file]`. SIGHUP reads the file again;
// SIGTERM lets what runs end, for ten seconds at most. Without a file it shows itself for three seconds.

import Glibc
import RunLoopKit
import RunLoopUnix

@main
struct JobScheduler {
    static let demonstration = """
        # A command that is done before its next date, one that is not, one that takes too long, and one that comes once.
        every 0.5 within 5: echo tick
        every 0.6 within 5: echo begins; sleep 1; echo ends
        every 1   within 0.3: sleep 100
        after 1.2 within 5: echo once; exit 3
        """

    static func main() throws {
        let loop = RunLoop.main
        let file = CommandLine.arguments.dropFirst().first
        let scheduler = Scheduler(on: loop, atMost: 3)
        let daemon = Daemon(
            loop: loop, manager: try ServiceManager(), drainLimit: .seconds(file == nil ? 1 : 10),
            exitLimit: .seconds(2))
        try daemon.handleSignals { signal in
            print(signal)
            fflush(nil)
        }

        func load() throws {
            scheduler.schedule(try Job.all(in: file.map(contents) ?? demonstration))
        }
        daemon.onReload(name: "jobs") {
            do { try load() } catch { print("the jobs stay as they are: \(error)") }
        }
        daemon.onStop(.drain, name: "finish") { await scheduler.finish() }
        daemon.onStop(.exit, name: "end") { await scheduler.end() }

        try load()
        if file == nil { loop.asyncAfter(.seconds(3)) { daemon.stop() } }
        let status = daemon.run()
        print("stopped")
        exit(status)
    }

    static func contents(of path: String) throws -> String {
        guard let file = fopen(path, "r") else { throw SystemError("open \(path)", errno: errno) }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        while case let byte = getc(file), byte != EOF { bytes.append(UInt8(byte)) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
