import RunLoopKit
import RunLoopUnix

/// One of the clients of the week: it sets numbers, and looks for what it has set. One request is under way at a time.
final class WeekClient {
    /// What it knows of a key that it alone sets.
    struct Known {
        /// The number that was acknowledged last, and when.
        var safe: (number: Int, at: RunLoop.Instant)?
        /// The number that was sent last, whether it arrived or not.
        var sent = 0
        /// When the number that was sent last expires at the latest, if it expires.
        var expiry: RunLoop.Instant?
    }

    private enum Request {
        case set(key: Int, number: Int)
        case get(key: Int)
    }

    private let loop: RunLoop
    private let name: String
    private let week: Week
    private var random: RunLoop.RandomNumbers
    private var keys = [Known](repeating: Known(), count: 4)
    private var next = 1
    private var connection: Connection?
    private var underWay: Request?
    private var pauseOfNow: DelayedCall?
    private(set) var answers = 0

    init(_ number: Int, on loop: RunLoop, _ week: Week) {
        (self.loop, self.week) = (loop, week)
        name = "c\(number)"
        random = loop.randomNumbers
        connect()
    }

    private func connect() {
        var retry = Connection.Retry()
        retry.maximumTries = nil
        retry.firstDelay = .seconds(60)
        retry.maximumDelay = .seconds(600)
        Connection.connect(host: "store", port: 6379, on: loop, timeout: .seconds(10), retry: retry) {
            [unowned self] _, bytes in
            receive(bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
        } completion: { [self] result in
            connection = try! result.get()
            connection!.closeHandler = { [weak self] _, _ in self?.lost() }
            try? connection!.start()
            pause()
        }
    }

    private func lost() {
        (connection, underWay) = (nil, nil)
        connect()
    }

    private func pause() {
        pauseOfNow?.cancel()
        pauseOfNow = loop.perform(afterDelay: .seconds(Int.random(in: 1...3_600, using: &random))) { [weak self] in
            self?.ask()
        }
    }

    // MARK: Requests

    private func ask() {
        guard let connection, connection.isOpen, underWay == nil else { return }
        let key = Int.random(in: 0..<keys.count, using: &random)
        guard Bool.random(using: &random) else {
            underWay = .get(key: key)
            return connection.write("GET \(name):\(key)\r\n")
        }
        keys[key].sent = next
        // Keys of even numbers expire.
        if key % 2 == 0 {
            let life = Int.random(in: 1...3_600, using: &random)
            keys[key].expiry = .distantFuture
            connection.write("SET \(name):\(key) \(next) EX \(life)\r\n")
            underWay = .set(key: key, number: next)
            lives[key] = life
        } else {
            connection.write("SET \(name):\(key) \(next)\r\n")
            underWay = .set(key: key, number: next)
        }
        next += 1
    }

    private var lives: [Int: Int] = [:]

    /// - Returns: how many bytes were a whole reply.
    private func receive(_ text: String) -> Int {
        guard let end = text.firstIndex(of: "\r\n") else { return 0 }
        let line = text[..<end]
        var used = line.utf8.count + 2
        var value: Int?
        if line.hasPrefix("$"), line != "$-1" {
            guard let count = Int(line.dropFirst()), text.utf8.count >= used + count + 2 else { return 0 }
            value = Int(text.utf8.dropFirst(used).prefix(count).map { String(UnicodeScalar($0)) }.joined())
            used += count + 2
        }
        answers += 1
        switch underWay {
        case .set(let key, let number):
            // A full disk refuses.
            if line == "+OK" {
                keys[key].safe = (number, loop.now)
                if let life = lives[key], key % 2 == 0 { keys[key].expiry = loop.now + .seconds(life) }
            }
        case .get(let key): check(key, value)
        case nil: week.fail("\(name) got a reply that it has not asked for: \(line)")
        }
        underWay = nil
        pause()
        return used
    }

    private func check(_ key: Int, _ value: Int?) {
        let known = keys[key]
        if let value, value > known.sent { week.fail("\(name):\(key) is \(value), which was never sent") }
        if key % 2 == 0 {
            guard let expiry = known.expiry, value == known.sent, known.safe?.number == value else { return }
            if loop.now > expiry + week.allowance {
                week.fail("\(name):\(key) is \(value!), which expired at \(expiry); it is \(loop.now)")
            }
        } else if let safe = known.safe, week.isSafe(safe.at), (value ?? 0) < safe.number {
            week.fail("\(name):\(key) is \(value ?? 0), but \(safe.number) was acknowledged at \(safe.at)")
        }
    }
}
