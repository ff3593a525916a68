import FoundationEssentials
import RunLoopCalendar
import RunLoopKit
import Testing

@testable import Cron

@Suite("The table of jobs")
struct JobTableTests {
    private let berlin = TimeZone(identifier: "Europe/Berlin")!

    private func table(_ text: String) throws(JobTable.Unreadable) -> [Job] {
        try JobTable(text.utf8, of: "jobs", in: berlin).jobs
    }

    private func mistake(_ text: String) -> String? {
        do {
            _ = try table(text)
            return nil
        } catch {
            return error.description
        }
    }

    @Test("the table has a job a line, in the order of the file, with blanks, comments and line ends of any kind")
    func lines() throws {
        let jobs = try table(
            """
            # a comment

               \t
            backup\t30 2 * * *  limit=1h  zone=America/New_York\ttar c /srv | gzip  > "/b/$(date +%F)"  \r
              poll every 10m missed=skip poll # not a comment
            env @daily FOO=1 limit=x cmd
            each 0 8 * * mon missed=each limit=250ms true
            """)
        #expect(jobs.map(\.name) == ["backup", "poll", "env", "each"])
        let newYork = TimeZone(identifier: "America/New_York")!
        #expect(jobs[0].dates == .calendar(.daily(at: TimeOfDay(hour: 2, minute: 30), in: newYork)))
        #expect(jobs[0].command == #"tar c /srv | gzip  > "/b/$(date +%F)"  "#)
        #expect(jobs[0].limit?.duration == .seconds(3_600) && jobs[0].missed == .once)
        #expect(jobs[1].dates == .every(seconds: 600) && jobs[1].missed == .skip && jobs[1].limit == nil)
        #expect(jobs[1].command == "poll # not a comment")
        #expect(jobs[2].dates == .calendar(.daily(at: .midnight, in: berlin)))
        #expect(jobs[2].command == "FOO=1 limit=x cmd")
        #expect(
            jobs[3].dates == .calendar(.weekly(on: [.monday], at: TimeOfDay(hour: 8), in: berlin))
                && jobs[3].missed == .each && jobs[3].limit?.duration == .milliseconds(250))
    }

    @Test("the table may be empty")
    func empty() throws {
        #expect(try table("").isEmpty && table("\n# nothing\n").isEmpty)
    }

    @Test(
        "a mistake is reported with its file, line and reason",
        arguments: [
            ("a", "when it is to run is missing"),
            ("a every", "how often it is to run is missing"),
            ("a 1 2 3", "the month is missing"),
            ("a 60 * * * * true", #"minute: found "60"; allowed: 0 to 59"#),
            (
                "a @often true",
                #"cron expression: found "@often"; allowed: minute, hour, day of the month, month and day of the week, or "#
                    + "@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually"
            ),
            ("a @daily", "there is no command"),
            ("a @daily limit=1s", "there is no command"),
            ("a every 0s true", #"every 0s: found "0s"; allowed: whole seconds, such as 90s or 10m"#),
            ("a every 1.5s true", #"every 1.5s: found "1.5s"; allowed: whole seconds, such as 90s or 10m"#),
            ("a every 10 true", #"every 10: found "10"; allowed: whole seconds, such as 90s or 10m"#),
            ("a @daily limit=0s true", #"limit: found "0s"; allowed: a time, such as 90s or 1.5h"#),
            ("a @daily limit=ten true", #"limit: found "ten"; allowed: a time, such as 90s or 1.5h"#),
            ("a @daily missed=all true", #"missed: found "all"; allowed: once, each, skip"#),
            ("a @daily zone=Mars true", #"zone: found "Mars"; allowed: a zone, such as Europe/Berlin"#),
            (
                "a @daily limt=1s true",
                "there is no option limt; a command that begins with limt= is written env limt=…"
            ),
            ("a/b @daily true", "a/b is no name: at most 64 of the letters a to z, digits, and -_."),
            ("a @daily \u{0}", "this is not text in UTF-8"),
        ])
    func mistakes(line: String, reason: String) {
        #expect(mistake("# first\nok @daily true\n\(line)\nlater oops\n") == "jobs:3: \(reason)")
    }

    @Test("the table has each name once, and only text")
    func more() {
        #expect(
            mistake("a @daily true\n\na @hourly true") == "jobs:3: line 1 has a job of the name a already")
        #expect(throws: JobTable.Unreadable.self) { try JobTable([97, 32, 0xFF], of: "jobs", in: berlin) }
        #expect(mistake(String(repeating: "a", count: 65) + " @daily true") != nil)
    }
}
