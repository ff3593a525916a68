import Glibc
import RunLoopHosts
import RunLoopKit
import RunLoopUnix

/// A command of the table in its process: `work 10 60` takes 10 to 60 seconds, `stubborn 10 60` ignores the request to
/// end, and `ask` queries the daemon.
final class WatchedCommand {
    private let process: SimulatedProcess
    private let cron: WatchedCron
    private var number = 0

    init(_ process: SimulatedProcess, _ cron: WatchedCron) {
        (self.process, self.cron) = (process, cron)
    }

    func start() throws {
        let words = process.arguments[1].split(separator: " ")
        if words[0] == "ask" {
            // At most.
            begin(duration: .seconds(1), isStubborn: false)
            process.loop.task { [self] in try await ask() }
        } else {
            let seconds = cron.chooseSeconds(process, Int(words[1])!...Int(words[2])!)
            try work(for: .seconds(seconds), isStubborn: words[0] == "stubborn")
        }
    }

    private func begin(duration: Duration, isStubborn: Bool) {
        let now = process.loop.now
        number = cron.commandBegan(
            Diary.Run(
                name: process.environment["CRON_JOB"] ?? "", date: time(process.environment["CRON_DATE"] ?? ""),
                start: now, planned: now + duration, isStubborn: isStubborn))
    }

    private func end() {
        cron.commandEnded(number, at: process.loop.now)
    }

    private func work(for duration: Duration, isStubborn: Bool) throws {
        let source = try SignalSource(signal: .terminate) { [self] _ in
            cron.commandWasAsked(number, at: process.loop.now)
            if !isStubborn { process.exit(143) }
        }
        try process.loop.add(source, forMode: .common)
        begin(duration: duration, isStubborn: isStubborn)
        process.print("begins")
        process.loop.perform(afterDelay: duration) { [self] in
            end()
            process.exit(number % 2 == 0 ? 0 : 1)
        }
    }

    /// Asks the daemon for its counts.
    private nonisolated(nonsending) func ask() async throws {
        let connection = try await Connection.connect(to: Endpoint(path: WatchedCron.control), on: process.loop)
        try await connection.write("list\n")
        var answer: [String] = []
        for try await line in connection.lines() {
            answer.append(line)
            if line == "OK" { break }
        }
        cron.check(answer, at: process.loop.now)
        connection.close()
        end()
    }
}

/// Returns the time written in this form: `2026-03-29T01:00:00Z`.
func time(_ text: String) -> RunLoop.WallTime {
    let numbers = text.split { !$0.isNumber }.compactMap { Int32($0) }
    guard numbers.count == 6 else { return .distantPast }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
    return RunLoop.WallTime(secondsSince1970: Int64(timegm(&parts)))
}
