import ExampleTestSupport
import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

@testable import Cron

@Suite("Cron and real commands", .timeLimit(.minutes(5)))
struct DaemonTests {
    @Test("cron notifies the service manager of its start, life, reloads and stop; jobs cannot")
    func manager() throws {
        let directory = TemporaryDirectory()
        let manager = try Manager(in: directory)
        let cron = try CronUnderTest(
            """
            tick every 1s   echo "$CRON_JOB $CRON_DATE" >> $OUT
            env  @yearly    echo "manager ${NOTIFY_SOCKET-none} ${WATCHDOG_USEC-none} date ${CRON_DATE-none}"; echo err >&2
            """, in: directory, environment: ["NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "200000"])
        #expect(manager.hears("READY=1", "WATCHDOG=1", "WATCHDOG=1"))
        try cron.run("env")
        try cron.waits(for: "idle runs=1 failed=0", of: "env")
        let shown = try cron.ask("show env")
        #expect(shown.contains("| manager none none date none") && shown.contains("| err"), "\(shown)")
        try cron.kill(.hangUp)
        #expect(manager.hears("READY=1", "RELOADING=1", "READY=1"))
        #expect(becomes { manager.hears() && cron.out.count > 1 })
        try cron.kill(.terminate)
        #expect(try cron.wait() == .exited(0))
        #expect(manager.hears("STOPPING=1"))
        #expect(access(directory["control"], F_OK) != 0, "the socket is removed")
        // A run for each second, in order, each with the date that it runs for.
        let dates = cron.out.compactMap { line in line.split(separator: " ").last.map(String.init) }
        #expect(dates == Set(dates).sorted() && cron.out.allSatisfy { $0.hasPrefix("tick 2") }, "\(cron.out)")
    }

    @Test(
        "a replaced, rewritten or malformed table: jobs that stay continue, and removed ones are not started again"
    )
    func tables() throws {
        let cron = try CronUnderTest("stays @yearly sleep 1000\ngoes @yearly sleep 1000\n")
        for name in ["stays", "goes"] { try cron.run(name) }
        for name in ["stays", "goes"] { try cron.waits(for: "running", of: name) }
        let before = try cron.ask("show stays")
        // Editors save this way: another file takes its place.
        cron.directory.write("stays @yearly sleep 1000\nnew every 1h true\n", to: "jobs~")
        cron.directory.move("jobs~", to: cron.directory["jobs"])
        try cron.waits(for: "idle", of: "new")
        #expect(try cron.ask("show stays") == before)
        #expect(try cron.ask("list").contains("goes running next=- runs=0 failed=0 skipped=0 missed=0"))
        #expect(try cron.ask("run goes") == ["ERR goes is in the table no more"])
        #expect(try cron.ask("stop goes") == ["OK"])
        #expect(becomes { (try? cron.state(of: "goes")) == nil })
        #expect(try cron.past == ["goes was stopped, ended by SIGTERM"])
        // Malformed: everything stays, and the status reports the error.
        cron.directory.write("stays @yearly sleep 1000\nnew every so often\n", to: "jobs")
        let mistake =
            "\(cron.directory["jobs"]):2: every so: found \"so\"; allowed: whole seconds, such as 90s or 10m"
        #expect(becomes { (try? cron.ask("status"))?[1] == "table: \(mistake)" })
        #expect(cron.log.contains("\(mistake); the jobs stay as they are"))
        #expect(try cron.ask("reload") == ["ERR \(mistake)"])
        #expect(try cron.state(of: "new") == "idle runs=0 failed=0 skipped=0 missed=0")
        cron.directory.write("stays @yearly true\n", to: "jobs")
        #expect(becomes { (try? cron.state(of: "new")) == nil })
        #expect(try cron.ask("status")[1] == "table: -")
        // The running command is still the old one; later runs use the new one.
        try cron.waits(for: "running", of: "stays")
        #expect(try cron.ask("stop stays") == ["OK"])
        try cron.waits(for: "idle runs=1 failed=1", of: "stays")
        try cron.run("stays")
        try cron.waits(for: "idle runs=2 failed=1", of: "stays")
    }

    @Test("a job that takes too long is asked to end with all its processes, and killed; leftover processes are killed")
    func limits() throws {
        let cron = try CronUnderTest(
            """
            asked    @yearly limit=100ms  sleep 1000 & echo $! >> $OUT; trap 'echo asked; exit 4' TERM; wait
            stubborn @yearly limit=100ms  trap '' TERM; sleep 1000 & echo $! >> $OUT; while :; do sleep 0.1; done
            leaves   @yearly              sleep 1000 & echo $! >> $OUT
            """)
        for name in ["asked", "stubborn", "leaves"] { try cron.run(name) }
        try cron.waits(for: "idle runs=1 failed=1", of: "asked")
        try cron.waits(for: "idle runs=1 failed=1", of: "stubborn")
        try cron.waits(for: "idle runs=1 failed=0", of: "leaves")
        #expect(
            try Set(cron.past) == [
                "asked took too long, exited with code 4", "stubborn took too long, ended by SIGKILL",
                "leaves exited with code 0",
            ])
        #expect(try cron.ask("show asked").last(where: { $0.hasPrefix("|") }) == "| asked")
        let left = cron.out.compactMap { Int32($0) }
        #expect(left.count == 3)
        for number in left { #expect(becomes { Glibc.kill(number, 0) != 0 }, "process \(number) is left") }
    }

    @Test("jobs run up to the limit at once, the others in the order in which they came; no job overlaps itself")
    func places() throws {
        let names = ["a", "b", "c", "d", "e"]
        let cron = try CronUnderTest(
            names.map { "\($0) @yearly echo +\($0) >> $OUT; until [ -e $OUT.go ]; do sleep 0.02; done\n" }.joined(),
            ["--at-once", "2"])
        for name in names { try cron.run(name) }
        #expect(becomes { cron.out.count == 2 })
        #expect(try cron.ask("status")[0] == "jobs=5 running=2 waiting=3 at-once=2 stopping=no")
        #expect(try cron.state(of: "d") == "waiting runs=0 failed=0 skipped=0 missed=0")
        #expect(try cron.ask("run a") == ["ERR a still runs"])
        #expect(try cron.ask("stop d") == ["OK"])
        #expect(try cron.ask("stop d") == ["ERR d does not run"])
        cron.directory.write("", to: "out.go")
        for name in ["a", "b", "c", "e"] { try cron.waits(for: "idle runs=1 failed=0", of: name) }
        #expect(Set(cron.out.prefix(2)) == ["+a", "+b"] && Set(cron.out.dropFirst(2)) == ["+c", "+e"])
        #expect(try cron.past.first == "d called off")
    }

    @Test("at the stop running jobs may end, waiting ones are not started, and overlong ones are asked and killed")
    func stop() throws {
        let cron = try CronUnderTest(
            """
            ends     @yearly sleep 0.2; echo ended >> $OUT
            asked    @yearly trap 'echo asked >> $OUT; exit 0' TERM; echo + >> $OUT; while :; do sleep 0.02; done
            stubborn @yearly trap '' TERM; echo + >> $OUT; sh -c 'trap "" TERM; echo $$ > $OUT.child; sleep 1000'
            waits    @yearly echo never >> $OUT
            """, ["--at-once", "3", "--drain", "400ms"])
        for name in ["asked", "stubborn", "ends", "waits"] { try cron.run(name) }
        #expect(becomes { cron.out.count == 2 && !contents(of: cron.directory["out.child"]).isEmpty })
        try cron.kill(.terminate)
        #expect(try cron.wait() == .exited(0))
        #expect(cron.out == ["+", "+", "ended", "asked"], "\(cron.log)")
        #expect(cron.log.contains("[stubborn] was stopped, ended by SIGKILL") && cron.log.contains("stopped\n"))
        let child = try #require(Int32(contents(of: cron.directory["out.child"]).dropLast()))
        #expect(becomes { Glibc.kill(child, 0) != 0 }, "process \(child) is left")
    }

    @Test("missed dates are made up for once, as the job says, even if the daemon is killed meanwhile")
    func missed() throws {
        let directory = TemporaryDirectory()
        // A period with a date some minutes or hours ago, so that none falls into the test.
        let period = (RunLoop.current.wallTime.secondsSince1970 - 100) / 10_000
        let date = { RunLoop.WallTime(secondsSince1970: (10_000 - $0) * period) }
        let table = """
            once  every \(period)s             echo "once $CRON_DATE" >> $OUT
            each  every \(period)s missed=each echo "each $CRON_DATE" >> $OUT
            skip  every \(period)s missed=skip echo "skip $CRON_DATE" >> $OUT
            other every \(2 * period)s         echo "other $CRON_DATE" >> $OUT
            """
        let mark = Ledger.Mark(dates: "every \(period)s", date: date(3))
        try MarkFile.write(
            ["once": mark, "each": mark, "skip": mark, "other": mark, "gone": mark], to: directory["state"])
        let expected = ["each \(date(2))", "each \(date(1))", "each \(date(0))", "once \(date(2))"]
        do {
            let cron = try CronUnderTest(table, in: directory)
            try cron.waits(for: "idle runs=3 failed=0 skipped=0 missed=0", of: "each")
            try cron.waits(for: "idle runs=1 failed=0 skipped=0 missed=2", of: "once")
            // A job with other dates begins anew.
            #expect(try cron.state(of: "other") == "idle runs=0 failed=0 skipped=0 missed=0")
            #expect(cron.out.sorted() == expected)
            try cron.kill(.kill)
            #expect(try cron.wait() == .signalled(.kill, coreDumped: false))
        }
        let cron = try CronUnderTest(table, in: directory)
        for name in ["once", "each", "skip"] {
            #expect(try cron.state(of: name) == "idle runs=0 failed=0 skipped=0 missed=0")
        }
        #expect(cron.out.sorted() == expected)
        #expect(!contents(of: directory["state"]).contains("gone"))
    }

    @Test("a reason not to start is reported in one line, with an exit status")
    func refusals() throws {
        let directory = TemporaryDirectory()
        func expect(
            _ code: Int32, _ text: String, _ arguments: String..., environment: [String: String?] = [:],
            sourceLocation: SourceLocation = #_sourceLocation
        ) throws {
            let log = open(directory["log"], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            defer { close(log) }
            let child = try ChildProcess.spawn(
                .path(CronUnderTest.program), arguments: arguments, environment: .updating(environment),
                standardInput: .null, standardError: .descriptor(log))
            var status: ChildProcess.ExitStatus?
            try RunLoop.current.add(ChildSource(child) { status = $1 }, forMode: .default)
            RunLoop.current.run()
            let said = contents(of: directory["log"])
            #expect(status == .exited(code) && said.contains(text), "\(said)", sourceLocation: sourceLocation)
        }
        let jobs = directory["jobs"]
        try expect(78, "open \(jobs): No such file or directory", "--jobs", jobs)
        directory.write("a @daily true\nb\n", to: "jobs")
        try expect(78, "\(jobs):2: when it is to run is missing", "--jobs", jobs)
        directory.write("a @daily true\n", to: "jobs")
        try expect(78, "NOTIFY_SOCKET=oops", "--jobs", jobs, environment: ["NOTIFY_SOCKET": "oops"])
        try expect(69, "No such file or directory", "--jobs", jobs, "--control", directory["no/socket"])
        let state = directory["state"]
        directory.write("Cron 1\na\tx\ty\n", to: "state")
        try expect(65, "\(state):2: this is not a name, a number and dates", "--jobs", jobs, "--state", state)
        directory.write("Cron 1\na\t1", to: "state")
        try expect(65, "\(state) is not a whole file of this version", "--jobs", jobs, "--state", state)
        let other = try CronUnderTest("a @daily true\n")
        let taken = other.directory["state"]
        try expect(73, "lock \(taken).lock", "--jobs", jobs, "--state", taken)
        try expect(64, "--at-once takes a number from 1 to 1000", "--jobs", jobs, "--at-once", "0")
        try expect(64, "--grace", "--jobs", jobs, "--grace", "long")
    }
}
