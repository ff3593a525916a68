/// Writes a timeline in the JSON of Chrome's tracing, which Perfetto shows: tracks with slices, arrows between them, and
/// counters. Times are nanoseconds.
@_spi(Ports) public struct TimelineText {
    @_spi(Ports) public typealias Details = [(String, JSONText)]

    private var lines: [String] = []
    private var arrowCount = 0

    /// Creates a timeline without events.
    @_spi(Ports) public init() {}

    /// The timeline as JSON.
    @_spi(Ports) public var text: String { "{\"traceEvents\":[\n" + lines.joined(separator: ",\n") + "\n]}\n" }

    private mutating func add(_ phase: String, _ members: Details) {
        lines.append(JSONText.object([("ph", JSONText(phase))] + members).text)
    }

    /// Names a track of a process.
    @_spi(Ports) public mutating func addTrack(_ track: Int, of process: Int, named name: String) {
        add(
            "M",
            [
                ("name", JSONText("thread_name")), ("pid", JSONText(process)), ("tid", JSONText(track)),
                ("args", .object(("name", JSONText(name)))),
            ])
    }

    /// Adds an event that takes time.
    @_spi(Ports) public mutating func addSlice(
        _ name: String, _ kind: String, on track: Int, of process: Int, at time: Int64, lasting length: Int64,
        _ details: Details
    ) {
        add(
            "X",
            [
                ("name", JSONText(name)), ("cat", JSONText(kind)), ("pid", JSONText(process)), ("tid", JSONText(track)),
                ("ts", JSONText(microsecondsIn: time)), ("dur", JSONText(microsecondsIn: length)),
                ("args", .object(details)),
            ])
    }

    /// Adds an arrow between slices of tracks.
    @_spi(Ports) public mutating func addArrow(
        _ kind: String, of process: Int, from start: (track: Int, time: Int64), to end: (track: Int, time: Int64)
    ) {
        arrowCount += 1
        let both: Details = [
            ("id", JSONText(arrowCount)), ("name", JSONText(kind)), ("cat", JSONText(kind)), ("pid", JSONText(process)),
        ]
        func place(_ end: (track: Int, time: Int64)) -> Details {
            [("tid", JSONText(end.track)), ("ts", JSONText(microsecondsIn: end.time))]
        }
        add("s", both + place(start))
        add("f", [("bp", JSONText("e"))] + both + place(end))
    }

    /// Adds the values of a counter from a time on.
    @_spi(Ports) public mutating func addCounter(_ name: String, of process: Int, at time: Int64, _ values: Details) {
        add(
            "C",
            [
                ("name", JSONText(name)), ("pid", JSONText(process)), ("ts", JSONText(microsecondsIn: time)),
                ("args", .object(values)),
            ])
    }
}
