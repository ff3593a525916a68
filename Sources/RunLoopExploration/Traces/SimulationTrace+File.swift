@_spi(Ports) internal import RunLoopSimulation

extension SimulationTrace {
    /// Writes the trace to a file, which it replaces. O(n) in the number of events.
    ///
    /// - Throws: ``TraceFileError`` if the file cannot be written.
    public func write(to path: String) throws(TraceFileError) {
        try TextFile.write(lines.joined(separator: "\n") + "\n", to: path)
    }

    /// Reads a trace from a file that ``write(to:)`` has made. O(n) in the number of events.
    ///
    /// - Throws: ``TraceFileError`` if the file cannot be read, or has other contents.
    public init(contentsOf path: String) throws(TraceFileError) {
        let lines = try TextFile.read(path).split(separator: "\n")
        guard let trace = SimulationTrace(lines[...]) else { throw .notATrace(path) }
        self = trace
    }

    static let head = "trace "
    private static let cut = "later events are lost"

    /// The lines of the file.
    var lines: [String] {
        var lines = [Self.head + "\(token)"]
        if let fault { lines.append(fault.line) }
        if trace.isCut { lines.append(Self.cut) }
        return lines + trace.entries.map(\.description)
    }

    /// Creates a trace from such lines; `nil` for any other lines.
    init?(_ lines: ArraySlice<Substring>) {
        var rest = lines
        guard let first = rest.popFirst(), first.hasPrefix(Self.head),
            let token = ScheduleToken(String(first.dropFirst(Self.head.count)))
        else { return nil }
        let fault = rest.first.flatMap { Exploration.Fault(line: $0) }
        if fault != nil { rest.removeFirst() }
        var trace = Trace()
        if rest.first == Self.cut[...] {
            trace.isCut = true
            rest.removeFirst()
        }
        for line in rest {
            guard let entry = Trace.Entry(String(line)) else { return nil }
            trace.entries.append(entry)
        }
        self.init(trace, of: token, fault)
    }
}
