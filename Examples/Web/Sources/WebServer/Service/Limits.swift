internal import FoundationEssentials
internal import RunLoopHTTP
internal import RunLoopUnix

/// The limits for the daemon's clients. Each limit has an answer; the table of them is in the README.
struct Limits: Sendable {
    /// The limits that the server keeps.
    var http = HTTPServer.Limits()
    /// The largest number of bytes in an uploaded file.
    var uploadBytes = 1 << 30
    /// The largest number of messages that a member of the chat may send in a second. Each further KiB of a message
    /// counts as another one.
    var messagesPerSecond = 100

    init() {
        (http.bodyBytes, http.messageBytes) = (64 * 1024, 64 * 1024)
    }

    private static let counts: [String: any WritableKeyPath<Limits, Int> & Sendable] = [
        "connections": \.http.connections, "connectionsPerPeer": \.http.connectionsPerPeer,
        "headBytes": \.http.headBytes, "bodyBytes": \.http.bodyBytes, "uploadBytes": \.uploadBytes,
        "streams": \.http.streams, "resets": \.http.resets, "controlFrames": \.http.controlFrames,
        "messageBytes": \.http.messageBytes, "messagesPerSecond": \.messagesPerSecond,
        "unreadBytes": \.http.unreadBytes,
    ]
    private static let times: [String: any WritableKeyPath<Limits, Duration> & Sendable] = [
        "headSeconds": \.http.headTime, "idleSeconds": \.http.idleTime, "stallSeconds": \.http.stallTime,
        "answerSeconds": \.http.answerTime,
    ]

    /// The error for a file of limits that cannot be used.
    struct Unusable: Error, CustomStringConvertible {
        /// The reason, in one line.
        let description: String
    }

    /// Reads limits from a file with a JSON object of numbers, such as `{"connections": 500, "idleSeconds": 30}`. Other
    /// limits have their defaults.
    init(contentsOf path: String) throws {
        self.init()
        let file = try Disk.current.open(path, .reading)
        guard let numbers = try? JSONDecoder().decode([String: Double].self, from: Data(try file.contents())) else {
            throw Unusable(description: "\(path) is not a JSON object of numbers")
        }
        for (name, number) in numbers {
            let most = name == "uploadBytes" ? 1e15 : 1e9
            guard number > 0, number <= most else {
                throw Unusable(description: "\(path): \(name) is a number above zero, and at most \(Int(most))")
            }
            if let count = Self.counts[name] {
                guard let whole = Int(exactly: number) else {
                    throw Unusable(description: "\(path): \(name) is a whole number")
                }
                self[keyPath: count] = whole
            } else if let time = Self.times[name] {
                self[keyPath: time] = .seconds(number)
            } else {
                throw Unusable(description: "\(path): there is no limit \(name)")
            }
        }
    }
}
