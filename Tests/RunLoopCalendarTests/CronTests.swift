import FoundationEssentials
import RunLoopCalendar
import Testing

@Suite("Cron expressions")
struct CronTests {
    @Test(
        "an expression of crontab(5) is read",
        arguments: [
            ("* * * * *", "* * * * *"),
            ("*/5 * * * *", "*/5 * * * *"),
            ("10-30/5 * * * *", "10,15,20,25,30 * * * *"),
            ("1,2,3,5 * * * *", "1-3,5 * * * *"),
            ("0-10,20-29/3,59 * * * *", "0-10,20,23,26,29,59 * * * *"),
            ("7,* * * * *", "* * * * *"),
            ("*/90 * * * *", "0 * * * *"),
            ("*/9223372036854775807 * * * *", "0 * * * *"),
            ("05 004 * * *", "5 4 * * *"),
            (" \t5\t4  * * sun ", "5 4 * * 0"),
            ("0 9-17 * * mon-fri", "0 9-17 * * 1-5"),
            ("0 0-23/2 * * *", "0 */2 * * *"),
            ("0 0-23 * * *", "0 * * * *"),
            ("0 0 * JAN,Jul *", "0 0 * 1,7 *"),
            ("0 0 * 1-12/3 *", "0 0 * */3 *"),
            ("0 0 * feb-apr *", "0 0 * 2-4 *"),
            ("0 0 * * 7", "0 0 * * 0"),
            ("0 0 * * 5-7", "0 0 * * 0,5,6"),
            ("0 0 * * 0-7", "0 0 * * *"),
            ("0 0 * * sun-sat", "0 0 * * *"),
            ("0 0 * * Sun,tUe,SAT", "0 0 * * 0,2,6"),
            ("0 0 29 2 *", "0 0 29 2 *"),
            // Both restricted: one of them is enough.
            ("30 4 1,15 * 5", "30 4 1,15 * 5"),
            ("0 0 1-31 * 5", "0 0 * * *"),
            ("0 0 30 2 1", "0 0 30 2 1"),
            // One begins with a star: both must fit.
            ("0 0 */2 * 1", "0 0 */2 * 1"),
            ("0 0 */10,5 * 1", "0 0 */31,5,11,21,31 * 1"),
            ("0 0 2-4 * */2", "0 0 2-4 * */2"),
            ("0 0 2 * */4,5", "0 0 2 * */7,4,5"),
            ("0 0 3 * */7", "0 0 3 * */7"),
            ("0 0 * * */2", "0 0 * * 0,2,4,6"),
            ("@hourly", "0 * * * *"),
            ("@daily", "0 0 * * *"),
            ("@midnight", "0 0 * * *"),
            ("@weekly", "0 0 * * 0"),
            ("@monthly", "0 0 1 * *"),
            (" @yearly ", "0 0 1 1 *"),
            ("@annually", "0 0 1 1 *"),
        ])
    func accepted(expression: String, line: String) throws {
        let schedule = try CalendarSchedule(cron: expression, in: .gmt)
        #expect("\(schedule)" == "\(line) in GMT")
        #expect(try CalendarSchedule(cron: line, in: .gmt) == schedule)
    }

    @Test(
        "any other expression is refused, with the field and the text found there",
        arguments: [
            ("60 * * * *", .minute, "60"),
            ("1-60 * * * *", .minute, "60"),
            ("99999999999999999999 * * * *", .minute, "99999999999999999999"),
            ("-1 * * * *", .minute, "-1"),
            ("5- * * * *", .minute, "5-"),
            ("1-2-3 * * * *", .minute, "2-3"),
            ("+1 * * * *", .minute, "+1"),
            ("1.5 * * * *", .minute, "1.5"),
            ("0x1 * * * *", .minute, "0x1"),
            ("٣ * * * *", .minute, "٣"),
            ("*5 * * * *", .minute, "*5"),
            ("** * * * *", .minute, "**"),
            ("1,,2 * * * *", .minute, "1,,2"),
            (", * * * *", .minute, ","),
            ("5/15 * * * *", .minute, "5/15"),
            ("*/0 * * * *", .minute, "*/0"),
            ("*/ * * * *", .minute, "*/"),
            ("*/-5 * * * *", .minute, "*/-5"),
            ("*/5/5 * * * *", .minute, "*/5/5"),
            ("30-10 * * * *", .minute, "30-10"),
            ("mon * * * *", .minute, "mon"),
            ("0~9 * * * *", .minute, "0~9"),
            ("* 24 * * *", .hour, "24"),
            ("* 1,2,25-26 * * *", .hour, "25"),
            ("* * 0 * *", .dayOfMonth, "0"),
            ("* * 32 * *", .dayOfMonth, "32"),
            ("* * L * *", .dayOfMonth, "L"),
            ("* * ? * *", .dayOfMonth, "?"),
            ("* * * 0 *", .month, "0"),
            ("* * * 13 *", .month, "13"),
            ("* * * january *", .month, "january"),
            ("* * * mon *", .month, "mon"),
            ("* * * * 8", .dayOfWeek, "8"),
            ("* * * * monday", .dayOfWeek, "monday"),
            ("* * * * 5#2", .dayOfWeek, "5#2"),
            ("* * * * sat-sun", .dayOfWeek, "sat-sun"),
            ("0 0 * * *\n", .dayOfWeek, "*\n"),
            // No dates match.
            ("0 0 30 2 *", .dayOfMonth, "30"),
            ("0 0 31 2,4,6,9,11 *", .dayOfMonth, "31"),
            ("0 0 30-31 2 */2", .dayOfMonth, "30-31"),
            // Not five fields.
            ("", nil, ""),
            ("* * * *", nil, "* * * *"),
            ("* * * * * *", nil, "* * * * * *"),
            ("@reboot", nil, "@reboot"),
            ("@Daily", nil, "@Daily"),
            ("@daily *", nil, "@daily *"),
        ] as [(String, CalendarSchedule.CronError.Field?, String)])
    func refused(expression: String, field: CalendarSchedule.CronError.Field?, found: String) throws {
        let error = try #require(throws: CalendarSchedule.CronError.self) {
            try CalendarSchedule(cron: expression, in: .gmt)
        }
        #expect(error.field == field)
        #expect(error.found == found)
        #expect(!error.allowed.isEmpty)
    }

    @Test(
        "an error describes the allowed input",
        arguments: [
            ("60 * * * *", #"minute: found "60"; allowed: 0 to 59"#),
            ("* * * 13 *", #"month: found "13"; allowed: 1 to 12 or jan to dec"#),
            ("* 8/2 * * *", #"hour: found "8/2"; allowed: a step after * or after a range, such as 8-23/2"#),
            (
                "* * * * fri-sun",
                #"day of the week: found "fri-sun"; allowed: a range that goes up; 5-7 ends on Sunday"#
            ),
            ("* * 31 jun *", #"day of the month: found "31"; allowed: a day that one of the months has"#),
            (
                "0 6",
                #"cron expression: found "0 6"; allowed: minute, hour, day of the month, month and day of the week, "#
                    + "or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually"
            ),
        ])
    func says(expression: String, text: String) throws {
        let error = try #require(throws: CalendarSchedule.CronError.self) {
            try CalendarSchedule(cron: expression, in: .gmt)
        }
        #expect("\(error)" == text)
    }
}
