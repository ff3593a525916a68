internal import FoundationEssentials
internal import RunLoopUnix

/// The limits for the daemon's clients. Each limit has an answer; the table of them is in the README.
public struct Limits: Sendable, Equatable {
    /// The largest number of open connections.
    public var connections = 10_000
    /// The largest number of open connections from one address.
    public var connectionsPerPeer = 1_000
    /// The largest number of bytes in the names and values of a request's headers, together with its target.
    public var headBytes = 16 * 1024
    /// The largest number of bytes in a body that is kept in memory.
    public var bodyBytes = 64 * 1024
    /// The largest number of bytes in an uploaded file.
    public var uploadBytes = 1 << 30
    /// The largest number of concurrent streams in one HTTP/2 connection.
    public var streams = 100
    /// The largest number of streams that one HTTP/2 connection may reset in half a minute.
    public var resets = 200
    /// The largest number of pings and settings that one HTTP/2 connection may send in half a minute.
    public var controlFrames = 200
    /// The largest number of bytes in a message of the chat.
    public var messageBytes = 64 * 1024
    /// The largest number of messages that a member of the chat may send in a second. Each further KiB of a message
    /// counts as another one.
    public var messagesPerSecond = 100
    /// The largest number of bytes that wait for a member of the chat who reads slowly.
    public var unreadBytes = 256 * 1024
    /// The longest time from the first byte of a request, or the start of its connection, to the end of its head.
    public var headTime = Duration.seconds(10)
    /// The longest time that a connection may be without a request.
    public var idleTime = Duration.seconds(60)
    /// The longest time that a request waits for its body, or a response for its reader.
    public var stallTime = Duration.seconds(30)

    /// Creates the default limits.
    public init() {}

    private static let counts: [(name: String, field: any WritableKeyPath<Limits, Int> & Sendable)] = [
        ("connections", \.connections), ("connectionsPerPeer", \.connectionsPerPeer), ("headBytes", \.headBytes),
        ("bodyBytes", \.bodyBytes), ("uploadBytes", \.uploadBytes), ("streams", \.streams), ("resets", \.resets),
        ("controlFrames", \.controlFrames), ("messageBytes", \.messageBytes),
        ("messagesPerSecond", \.messagesPerSecond), ("unreadBytes", \.unreadBytes),
    ]
    private static let times: [(name: String, field: any WritableKeyPath<Limits, Duration> & Sendable)] = [
        ("headSeconds", \.headTime), ("idleSeconds", \.idleTime), ("stallSeconds", \.stallTime),
    ]

    /// The error for a file of limits that cannot be used.
    public struct Unusable: Error, CustomStringConvertible {
        /// The reason, in one line.
        public let description: String
    }

    /// Reads limits from a file with a JSON object of numbers, such as `{"connections": 500, "idleSeconds": 30}`. Other
    /// limits have their defaults.
    public init(contentsOf path: String) throws {
        let file = try Disk.current.open(path, .reading)
        guard let numbers = try? JSONDecoder().decode([String: Double].self, from: Data(try file.contents())) else {
            throw Unusable(description: "\(path) is not a JSON object of numbers")
        }
        for (name, number) in numbers {
            let most = name == "uploadBytes" ? 1e15 : 1e9
            guard number > 0, number <= most else {
                throw Unusable(description: "\(path): \(name) is a number above zero, and at most \(Int(most))")
            }
            if let count = Self.counts.first(where: { $0.name == name }) {
                guard let whole = Int(exactly: number) else {
                    throw Unusable(description: "\(path): \(name) is a whole number")
                }
                self[keyPath: count.field] = whole
            } else if let time = Self.times.first(where: { $0.name == name }) {
                self[keyPath: time.field] = .seconds(number)
            } else {
                throw Unusable(description: "\(path): there is no limit \(name)")
            }
        }
    }
}
