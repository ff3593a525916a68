extension Exploration {
    /// A fault of a run. A `Sendable` value.
    public struct Fault: Sendable, Hashable, CustomStringConvertible {
        /// The kinds of faults.
        public enum Kind: String, Sendable, Hashable {
            /// The program has thrown an error, or an expectation of a test has failed.
            case expectation
            /// The program of a host that may not fail has thrown an error.
            case failure
            /// The process has ended: a precondition has failed, or the program touched memory that it must not.
            case trap
            /// The run has not ended within its time limit.
            case hang
            /// Nothing can happen any more, and a task waits.
            case deadlock
            /// A task of a loop has not ended, though it was cancelled and its loop has ended.
            case leak
            /// A timer fired too late.
            case starvation
            /// Something has left the simulation, so that the run may differ each time.
            case escape
            /// A repeated schedule has given a different run.
            case difference
        }

        public let kind: Kind

        /// A sentence that describes the fault.
        public let description: String

        init(_ kind: Kind, _ description: String) {
            self.kind = kind
            self.description = description
        }

        static let difference = Fault(
            .difference, "the same schedule gave another run: something in the program does not follow from the seed")

        /// Returns `true` if `other` is the same fault, though perhaps with other numbers: a balance, a time, the
        /// number of waits.
        func isLike(_ other: Fault) -> Bool {
            guard kind == other.kind else { return false }
            // The words name all waits, and a shorter schedule may have fewer of them.
            if kind == .deadlock { return !waits.isDisjoint(with: other.waits) }
            // Only a run whose picture is drawn knows the timer.
            return kind == .starvation || words == other.words
        }

        /// The first line of the description. Further lines, such as a history, differ in each run.
        var sentence: Substring { description.prefix { !$0.isNewline } }

        private var words: String { String(sentence.filter { !$0.isNumber }) }

        private var waits: Set<Substring> {
            Set(words.split(separator: ", ").dropFirst().map { $0.hasPrefix("and ") ? $0.dropFirst(4) : $0 })
        }
    }
}

typealias Fault = Exploration.Fault

extension Exploration.Fault {
    /// The fault as a line of a file.
    var line: String { "fault \(kind.rawValue) \(Lines.escaped(description))" }

    /// Creates a fault from such a line; `nil` for any other line.
    init?(line: Substring) {
        guard let (kind, sentence) = Lines.pair(line, after: "fault "), let kind = Kind(rawValue: kind) else {
            return nil
        }
        self.init(kind, sentence)
    }
}
