import Glibc
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@testable import JobScheduler

@Suite("The example JobScheduler", .timeLimit(.minutes(5)))
struct JobSchedulerTests {
    @Test("runs jobs at their dates and never twice at once, reads its file again, and ends what it has started")
    func life() async {
        await onLoop { loop in
            let directory = TemporaryDirectory()
            directory.write(
                """
                # Ends only when it is asked to.
                after 0.01 within 1000: echo $$; exec sleep 1000
                every 0.01 within 1000: echo first; sleep 0.1
                every 0.01 within 0.05: trap '' TERM; echo stubborn; while :; do sleep 1; done
                """, to: "jobs")
            let daemon = try ChildProcess.spawn(
                .path(pathOfProgram("JobScheduler")), arguments: [directory["jobs"]], standardOutput: .pipe)
            let output = Connection(reading: daemon.standardOutput, writing: nil, on: loop)
            var sleeper: Int32?
            var seen: Set<String> = []
            var last = ""
            for try await line in output.lines() {
                last = line
                // The second one is in a hurry.
                if line == "SIGTERM", seen.insert(line).inserted { try daemon.kill(.terminate) }
                guard let end = line.firstIndex(of: "]") else { continue }
                let what = String(line[line.index(end, offsetBy: 2)...])
                if let number = Int32(what) { sleeper = number }
                seen.insert(what)
                if seen.isSuperset(of: ["first", "still runs", "has taken too long", "ended by SIGKILL"]),
                    sleeper != nil,
                    !seen.contains("reloaded")
                {
                    seen.insert("reloaded")
                    directory.write("every 0.01 within 1000: echo second", to: "jobs")
                    try daemon.kill(.hangUp)
                }
                if what == "second", seen.insert("stopping").inserted { try daemon.kill(.terminate) }
            }
            #expect(try await daemon.exit() == .exited(0))
            #expect(seen.contains("ended by SIGTERM") && last == "stopped", "\(seen)")
            let number = try #require(sleeper)
            #expect(Glibc.kill(number, SIGKILL) != 0 && errno == ESRCH, "what was started is left")
        }
    }

    @Test("a job file is read line by line, and a line that is no job is named")
    func file() throws {
        let jobs = try Job.all(in: "# a comment\n\nevery 0.5 within 2:  echo 'a:  b'\nafter 1 within 2: true\n")
        #expect(jobs.map(\.command).sorted() == ["echo 'a:  b'", "true"])
        let every = try #require(jobs.first { $0.command != "true" })
        #expect(every.dates == .every(.milliseconds(500)) && every.limit == .seconds(2))
        for line in [
            "sometimes 1 within 2: true", "every 0 within 2: true", "every 1 within x: true",
            "after inf within 1: true", "every 1: true", "x",
        ] {
            #expect(throws: Job.Unreadable.self) { try Job.all(in: line) }
        }
    }
}
