import RunLoopConsole

extension Screen {
    /// Returns the lines of a screen of the given size, each with exactly its width.
    func lines(width: Int, height: Int) -> [Line] {
        guard width > 0, height > 0 else { return [] }
        var lines = showsHelp ? help : content(height: height - 1)
        lines = Array(lines.prefix(height - 1))
        lines += Array(repeating: Line(), count: height - 1 - lines.count)
        return (lines + [footer]).map { $0.fitted(to: width) }
    }

    private func content(height: Int) -> [Line] {
        var lines = [title]
        guard let snapshot else { return lines }
        // The loops and the warnings take at most half of the screen.
        let most = max(1, height / 4)
        let loops = loops
        let table = Tables.loops(loops).lines
        lines.append(Line(table.heading, .header))
        let index = loops.firstIndex { $0.name == loop?.name } ?? 0
        let first = max(0, min(index - most / 2, loops.count - most))
        for (number, row) in table.rows.enumerated().dropFirst(first).prefix(most) {
            let isBad = loops[number].state == .blocked || loops[number].state == .silent
            lines.append(Line(row, number == index ? .chosen : isBad ? .warning : .plain))
        }
        if loops.count > most { lines.append(Line("\(loops.count) loops", .dim)) }
        let warnings = Tables.warnings(snapshot)
        for warning in warnings.prefix(most) { lines.append(Line("! \(warning)", .warning)) }
        if warnings.count > most { lines.append(Line("! and \(warnings.count - most) more", .warning)) }
        lines.append(Line())
        guard let loop else { return lines }
        lines.append(sectionTitles)
        return lines + sectionLines(of: loop, height: height - lines.count)
    }

    private var title: Line {
        var line = Line()
        if let snapshot {
            line.append(snapshot.program, .bold)
            let loops = snapshot.loops.count
            line.append(
                "  process \(snapshot.process)  \(loops) \(loops == 1 ? "loop" : "loops")  by \(order.rawValue)")
        }
        if isPaused { line.append("  paused", .warning) }
        if !status.isEmpty { line.append("  \(status)", .warning) }
        return line
    }

    private var sectionTitles: Line {
        var line = Line()
        for (index, one) in Section.allCases.enumerated() {
            line.append(" \(index + 1) \(one.rawValue) ", one == section ? .chosen : .plain)
        }
        if let loop { line.append("  of \(loop.name)") }
        if !filter.isEmpty { line.append("  with \"\(filter)\"", .bold) }
        return line
    }

    private func sectionLines(of loop: Console.Loop, height: Int) -> [Line] {
        let table = Tables.section(section, of: loop, by: order).lines
        let rows = table.rows.filter { filter.isEmpty || $0.lowercased().contains(filter.lowercased()) }
        let room = max(1, height - 1)
        let first = max(0, min(scroll, rows.count - room))
        let warned = loop.lines.contains { $0.growth != nil } && section == .items
        return [Line(table.heading, .header)]
            + rows.dropFirst(first).prefix(room).map { Line($0, warned && $0.contains(" +") ? .warning : .plain) }
    }

    private var footer: Line {
        if isTyping { return Line("Filter: \(filter)_", .bold) }
        var line = Line()
        for (key, text) in [
            ("F1", "Help"), ("F4", "Filter"), ("F6", "Sort"), ("Tab", "Section"), ("Space", "Pause"), ("F10", "Quit"),
        ] {
            line.append(key, .bold)
            line.append(text + " ", .chosen)
        }
        return line
    }

    private var help: [Line] {
        [
            Line("runloop-top: the loops of a process, live", .bold), Line(),
            Line("  Up, Down          choose a loop"),
            Line("  Tab, Left, Right  choose what is shown of it; also 1 to 5"),
            Line("  Page Up, Down     move in it"),
            Line("  t  l  c  n        sort by time, lateness, count or name; F6 or s: the next of them"),
            Line("  / or F4           show lines that contain a text only; Escape shows all again"),
            Line("  Space             pause, continue"),
            Line("  q or F10          quit"), Line(),
            Line("  PASS/S SLEEP/S FIRE/S JOB/S  passes, sleeps, calls of timers, jobs of tasks, each second"),
            Line("  CPU% SLEEP%                  the time that the thread computed, and that the loop slept"),
            Line("  LATE                         how late deadlines were served: half of them, 99 %, all"),
            Line(), Line("Press any key to go back.", .dim),
        ]
    }
}
