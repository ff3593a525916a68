/// A request on the control socket: one line with a word, and perhaps the name of a job.
enum Command: Hashable {
    case status
    case list
    case show(String)
    case history
    case run(String)
    case stop(String)
    case reload

    static let usage = "status, list, show NAME, history, run NAME, stop NAME, reload"

    /// - Returns: `nil` for any other line.
    init?(_ line: String) {
        let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
        switch (words.first, words.count) {
        case ("status", 1): self = .status
        case ("list", 1): self = .list
        case ("history", 1): self = .history
        case ("reload", 1): self = .reload
        case ("show", 2): self = .show(words[1])
        case ("run", 2): self = .run(words[1])
        case ("stop", 2): self = .stop(words[1])
        default: return nil
        }
    }
}
