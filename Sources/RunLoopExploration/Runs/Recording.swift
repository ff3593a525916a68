/// The record to make of a run, besides its departures.
enum Recording: Hashable {
    case none
    /// A trace of all events and choices, and optionally a look at the threads after a number of entries.
    case trace(lookingAt: Int? = nil)
}

extension Recording: LosslessStringConvertible {
    var description: String {
        switch self {
        case .none: "none"
        case .trace(let position?): "trace@\(position)"
        case .trace(nil): "trace"
        }
    }

    init?(_ text: String) {
        switch text {
        case "none": self = .none
        case "trace": self = .trace()
        case _ where text.hasPrefix("trace@"):
            guard let position = Int(text.dropFirst(6)) else { return nil }
            self = .trace(lookingAt: position)
        default: return nil
        }
    }
}
