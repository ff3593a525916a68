import RunLoopConsole

/// A table of one loop.
enum Section: String, CaseIterable {
    case handlers = "Handlers"
    case timers = "Timers"
    case items = "Items"
    case connections = "Connections"
    case tasks = "Tasks"
}

/// The criteria by which tables are sorted, the largest first.
enum Order: String, CaseIterable {
    case time = "time"
    case lateness = "lateness"
    case count = "count"
    case name = "name"
}

/// The tables of a snapshot.
enum Tables {
    static func loops(_ loops: [Console.Loop]) -> Table {
        let number = Table.Column.number
        var table = Table(columns: [
            .text("LOOP"), .text("STATE"), number("PASS/S"), number("SLEEP/S"), number("FIRE/S"), number("JOB/S"),
            number("CPU%"), number("SLEEP%"), number("LATE 50%"), number("99%"), number("MAX"), number("ITEMS"),
            number("CONN"), number("TASKS"), .text("CALL"),
        ])
        for loop in loops {
            table.rows.append([
                loop.name, loop.state == .blocked ? "BLOCKED" : loop.state.rawValue, Figures.count(loop.passes),
                Figures.count(loop.sleeps), Figures.count(loop.fires), Figures.count(loop.jobs),
                Figures.percent(loop.computing), Figures.percent(loop.asleep), Figures.time(loop.lateness.half),
                Figures.time(loop.lateness.most), Figures.time(loop.lateness.all), "\(loop.counts.items)",
                "\(loop.counts.connections)", "\(loop.counts.tasks)",
                loop.call.map { name($0.kind, $0.name, "") } ?? "",
            ])
        }
        return table
    }

    static func section(_ section: Section, of loop: Console.Loop, by order: Order) -> Table {
        switch section {
        case .handlers: handlers(loop.handlers, by: order)
        case .timers: timers(loop.due, by: order)
        case .items: items(loop.lines, by: order)
        case .connections: connections(loop.connections, by: order)
        case .tasks: tasks(loop.tasks, by: order)
        }
    }

    private static func handlers(_ handlers: [Console.Handler], by order: Order) -> Table {
        var table = Table(columns: [.number("TIME%"), .number("CALLS"), .number("LONGEST"), .text("HANDLER")])
        let sorted = handlers.sorted { left, right in
            switch order {
            case .time: left.share > right.share
            case .lateness: left.longest > right.longest
            case .count: left.calls > right.calls
            case .name: name(left.kind, left.name, left.origin) < name(right.kind, right.name, right.origin)
            }
        }
        table.rows = sorted.map {
            [Figures.percent($0.share), "\($0.calls)", Figures.time($0.longest), name($0.kind, $0.name, $0.origin)]
        }
        return table
    }

    private static func timers(_ due: [Console.Due], by order: Order) -> Table {
        var table = Table(columns: [.number("DUE IN"), .text("WHAT")])
        let sorted = order == .name ? due.sorted { ($0.name ?? "", $0.origin) < ($1.name ?? "", $1.origin) } : due
        table.rows = sorted.map {
            [Figures.time($0.time), name($0.kind, $0.name, $0.origin) + ($0.detail.map { ", \($0)" } ?? "")]
        }
        return table
    }

    private static func items(_ lines: [Console.Line], by order: Order) -> Table {
        var table = Table(columns: [.number("COUNT"), .number("GROWTH"), .text("MADE BY")])
        let sorted =
            switch order {
            case .time, .lateness: lines
            case .count: lines.sorted { $0.count > $1.count }
            case .name: lines.sorted { $0.origin < $1.origin }
            }
        table.rows = sorted.map { ["\($0.count)", $0.growth.map(growth) ?? "", name($0.kind, $0.name, $0.origin)] }
        return table
    }

    private static func connections(_ connections: [Console.Connection], by order: Order) -> Table {
        var table = Table(columns: [
            .number("FD"), .number("RECEIVED"), .number("SENT"), .number("UNREAD"), .number("UNSENT"), .text("PEER"),
            .text("MADE BY"),
        ])
        let sorted =
            switch order {
            case .time, .count: connections
            case .lateness: connections.sorted { $0.unread + $0.unsent > $1.unread + $1.unsent }
            case .name: connections.sorted { $0.peer ?? "" < $1.peer ?? "" }
            }
        table.rows = sorted.map {
            [
                "\($0.descriptor)", $0.received.map(Figures.bytes) ?? "-", $0.sent.map(Figures.bytes) ?? "-",
                Figures.bytes($0.unread), Figures.bytes($0.unsent), $0.peer ?? "-", $0.origin,
            ]
        }
        return table
    }

    private static func tasks(_ tasks: [Console.Task], by order: Order) -> Table {
        var table = Table(columns: [.number("TASK"), .text("STARTED BY"), .text("DOES")])
        let sorted =
            order == .name ? tasks.sorted { ($0.name ?? "", $0.origin) < ($1.name ?? "", $1.origin) } : tasks
        table.rows = sorted.map {
            ["\($0.number)", name("task", $0.name, $0.origin), $0.activity ?? "waits for something elsewhere"]
        }
        return table
    }

    // MARK: Warnings

    /// The troubles in a snapshot, the worst first.
    static func warnings(_ snapshot: Console.Snapshot) -> [String] {
        var lines: [String] = []
        for cycle in snapshot.cycles {
            let names = (cycle + cycle.prefix(1)).map { name("task", $0.name, $0.origin) }
            lines.append("deadlock: " + names.joined(separator: " awaits "))
        }
        for loop in snapshot.loops where loop.state == .blocked {
            guard let call = loop.call else { continue }
            let what = call.isWaiting ? "waiting" : "computing"
            lines.append(
                "\(loop.name) is blocked: \(name(call.kind, call.name, call.origin)) for \(Figures.time(call.time)), \(what)"
            )
        }
        for loop in snapshot.loops where loop.state == .silent {
            lines.append("\(loop.name) does not answer" + (loop.age.map { ", for \(Figures.time($0))" } ?? ""))
        }
        for loop in snapshot.loops {
            for line in loop.lines {
                guard let growth = line.growth else { continue }
                let what = name(line.kind, line.name, line.origin)
                lines.append("\(loop.name) has more and more: \(what): \(line.count), \(self.growth(growth))")
            }
        }
        return lines
    }

    private static func growth(_ growth: Console.Growth) -> String {
        "+\(growth.items) in \(Figures.time(growth.time))"
    }

    /// Returns a name such as `timer "poll" (Daemon/main.swift:12)`.
    private static func name(_ kind: String, _ name: String?, _ origin: String) -> String {
        kind + (name.map { " \"\($0)\"" } ?? "") + (origin.isEmpty ? "" : " (\(origin))")
    }

    /// Returns the whole snapshot as text.
    static func text(_ snapshot: Console.Snapshot) -> String {
        var text = "\(snapshot.program), process \(snapshot.process)\n"
        for warning in warnings(snapshot) { text += "! \(printable(warning))\n" }
        func add(_ table: Table) {
            let lines = table.lines
            for line in [lines.heading] + lines.rows { text += "\(line)\n" }
        }
        text += "\n"
        add(loops(snapshot.loops))
        for loop in snapshot.loops {
            for one in Section.allCases {
                let table = section(one, of: loop, by: .time)
                guard !table.rows.isEmpty else { continue }
                text += "\n\(printable(loop.name)): \(one.rawValue.lowercased())\n"
                add(table)
            }
        }
        return text
    }
}
