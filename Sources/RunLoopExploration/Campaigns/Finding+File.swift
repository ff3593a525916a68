internal import RunLoopCore
internal import RunLoopSimulation

extension Exploration.Finding {
    /// Writes the report and both runs to a text file, which is replaced.
    ///
    /// - Throws: ``TraceFileError`` if the file cannot be written.
    public func write(to path: String) throws(TraceFileError) {
        try TextFile.write(FindingFile(fault: fault, token: token, report: fileReport).text, to: path)
    }

    /// Reads a finding from a file that ``write(to:)`` or a campaign has made. O(n) in the number of events.
    ///
    /// - Throws: ``TraceFileError`` if the file cannot be read, or has other contents.
    public init(contentsOf path: String) throws(TraceFileError) {
        guard let file = FindingFile(try TextFile.read(path)), let finding = Exploration.Finding(file) else {
            throw .notATrace(path)
        }
        self = finding
    }

    /// The line between the report and the runs.
    private static let mark = "The runs, for programs:"

    /// The report, followed by the other properties of the finding.
    var fileReport: String {
        var lines = [
            "\(self)", "", Self.mark,
            "found \(schedules) \(attempts) \(isReproducible) \(Lines.escaped(strategy))", "first \(first)",
        ]
        if let stepping { lines.append("stepping \(Lines.escaped(stepping))") }
        if let cause {
            lines.append(
                "cause " + cause.likelihoods.map { "\($0.steps)/\($0.faults)/\($0.runs)" }.joined(separator: " "))
        }
        lines += marks.counts.sorted { $0.key < $1.key }.map { "mark \($0.value) \(Lines.escaped($0.key))" }
        lines += run.lines
        return (lines + (passingRun?.lines ?? [])).joined(separator: "\n")
    }

    private init?(_ file: FindingFile) {
        let lines = file.report.split(separator: "\n")
        guard let mark = lines.lastIndex(of: Self.mark[...]) else { return nil }
        var known: [Substring: Substring] = [:]
        var marks: [String: Int] = [:]
        let starts = lines.indices.filter { $0 > mark && lines[$0].hasPrefix(SimulationTrace.head) }
        guard let start = starts.first, starts.count <= 2 else { return nil }
        for line in lines[(mark + 1)..<start] {
            if let (count, name) = Lines.pair(line, after: "mark "), let count = Int(count) { marks[name] = count }
            guard let space = line.firstIndex(of: " ") else { return nil }
            known[line[..<space]] = line[space...].dropFirst()
        }
        let end = starts.count == 2 ? starts[1] : lines.endIndex
        let passing = starts.count == 2 ? SimulationTrace(lines[end...]) : nil
        let found = known["found"]?.split(separator: " ", maxSplits: 3) ?? []
        guard found.count == 4, let schedules = Int(found[0]), let attempts = Int(found[1]),
            let isSame = Bool(String(found[2])),
            let strategy = String(unescaping: found[3]),
            let first = known["first"].flatMap({ ScheduleToken(String($0)) }),
            let run = SimulationTrace(lines[start..<end]), (passing == nil) == (starts.count == 1)
        else { return nil }
        let likelihoods = known["cause"].map {
            $0.split(separator: " ").compactMap { Exploration.Cause.Likelihood($0) }
        }
        let cause = likelihoods.flatMap { $0.count >= 2 ? Exploration.Cause($0, run.trace.choices) : nil }
        self.init(
            fault: file.fault, token: file.token, first: first, schedules: schedules, marks: Simulation.Marks(marks),
            strategy: strategy, attempts: attempts, isReproducible: isSame,
            stepping: known["stepping"].flatMap { String(unescaping: $0) }, cause: cause, run: run, passingRun: passing)
    }
}

extension Exploration.Cause.Likelihood {
    /// Reads three numbers with strokes between them.
    fileprivate init?(_ text: Substring) {
        let numbers = text.split(separator: "/").compactMap { Int($0) }
        guard numbers.count == 3, numbers[0] >= 0, 0...max(0, numbers[2]) ~= numbers[1] else { return nil }
        self.init(steps: numbers[0], faults: numbers[1], runs: numbers[2])
    }
}
