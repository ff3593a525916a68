/// A schedule of a simulated program: its seed, and its departures from the usual choices.
///
/// A token replays the schedule, in any process, as long as the program is the same. A `Sendable` value.
public struct ScheduleToken: Sendable, Hashable {
    /// The seed of all chance in the simulation.
    public var seed: UInt64

    /// The places where another task or thread went first than usual, or something unusual was chosen, in order of
    /// time.
    public var departures: [Departure]

    /// Creates a schedule with these departures. Without departures, a task runs until it waits, threads have their
    /// turns in the order in which they were started, and each choice is the first one.
    public init(seed: UInt64, departures: [Departure] = []) {
        self.seed = seed
        self.departures = departures
    }

    /// A place where a schedule departs from the usual choice. A `Sendable` value.
    public struct Departure: Sendable, Hashable {
        /// The name of the task that would have continued, of the thread's turn, or of the choice.
        public let place: String
        /// The number of earlier steps, turns or choices with the name.
        public let step: Int
        /// The event that happens instead.
        public let instead: Instead

        /// The event that replaces the usual one. A `Sendable` value.
        public enum Instead: Sendable, Hashable {
            /// Another task, or another thread, continues.
            case other(String)
            /// Another possibility, given by its number, is chosen.
            case possibility(Int)
        }

        /// Creates a departure from the next step of `place` after `step` earlier ones.
        public init(place: String, step: Int, instead: Instead) {
            self.place = place
            self.step = step
            self.instead = instead
        }
    }
}

extension ScheduleToken.Departure: CustomStringConvertible {
    /// For example `b@0>a`: task `b` would have made its first step, and `a` continues instead; or `link is cut@2=1`.
    public var description: String {
        switch instead {
        case .other(let name): "\(Self.quote(place))@\(step)>\(Self.quote(name))"
        case .possibility(let number): "\(Self.quote(place))@\(step)=\(number)"
        }
    }

    fileprivate init?(_ text: Substring) {
        guard let at = text.firstIndex(of: "@"), let place = String(unescaping: text[..<at]) else { return nil }
        let rest = text[text.index(after: at)...]
        guard let sign = rest.firstIndex(where: { $0 == ">" || $0 == "=" }), let step = Int(rest[..<sign]), step >= 0
        else { return nil }
        let end = rest[rest.index(after: sign)...]
        if rest[sign] == ">" {
            guard let other = String(unescaping: end) else { return nil }
            self.init(place: place, step: step, instead: .other(other))
        } else {
            guard let number = Int(end), number >= 0 else { return nil }
            self.init(place: place, step: step, instead: .possibility(number))
        }
    }

    /// The characters that separate the parts of a token.
    private static let marks = Set("%@>=;".utf8)

    private static func quote(_ name: String) -> String {
        name.escaped { marks.contains($0) || $0 < 32 || $0 == 127 }
    }
}

extension ScheduleToken: LosslessStringConvertible {
    /// For example `7:b@0>a;a@7>b`.
    public var description: String { "\(seed):" + departures.map(\.description).joined(separator: ";") }

    /// The text as one word of a command for a shell, between apostrophes.
    public var shellWord: String { "'\(description.replacing("'", with: #"'\''"#))'" }

    /// Creates a schedule from the text of a token; `nil` for any other text.
    public init?(_ text: String) {
        guard let colon = text.firstIndex(of: ":"), let seed = UInt64(text[..<colon]) else { return nil }
        var departures: [Departure] = []
        for part in text[text.index(after: colon)...].split(separator: ";") {
            guard let departure = Departure(part) else { return nil }
            departures.append(departure)
        }
        self.init(seed: seed, departures: departures)
    }
}
