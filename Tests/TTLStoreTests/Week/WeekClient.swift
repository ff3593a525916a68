import RunLoopKit
import RunLoopUnix

/// One of the clients of the week: it sets numbers, and looks for what it has set. One request is under way at a time.
final class WeekClient {
    /// What it knows of a key that it alone sets.
    struct Known {
        /// The number that was acknowledged last, and when.
        var safe: (number: Int, at: RunLoop.Instant)?
        /// The number that was sent last, whether it arrived or not, and when.
        var sent = (number: 0, at: RunLoop.Instant.distantPast)
        /// How long that is to live, if not for ever.
        var life: Duration?
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
        // Keys of even numbers expire.
        let life = key % 2 == 0 ? Int.random(in: 1...7_200, using: &random) : nil
        (keys[key].sent, keys[key].life) = ((next, loop.now), life.map { .seconds($0) })
        underWay = .set(key: key, number: next)
        connection.write("SET \(name):\(key) \(next)\(life.map { " EX \($0)" } ?? "")\r\n")
        next += 1
    }

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
                week.hasAcknowledged()
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
        if let value, value > known.sent.number { week.fail("\(name):\(key) is \(value), which was never sent") }
        guard let safe = known.safe else { return }
        // Whether what was sent last has come is known if it was acknowledged.
        let life = known.sent.number == safe.number ? known.life : nil
        if let life, value == safe.number, loop.now > safe.at + life + week.allowance {
            week.fail("\(name):\(key) is \(safe.number), for \(life) from \(safe.at) on; it is \(loop.now)")
        }
        // A number that came later, and was not acknowledged, may be gone already.
        let mustLive = known.life == nil || life.map { loop.now < known.sent.at + $0 - week.allowance } ?? false
        if mustLive, week.isSafe(safe.at), (value ?? 0) < safe.number {
            week.fail("\(name):\(key) is \(value ?? 0), but \(safe.number) was acknowledged at \(safe.at)")
        }
    }
}
