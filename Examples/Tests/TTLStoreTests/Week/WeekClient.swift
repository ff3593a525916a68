import RunLoopKit
import RunLoopUnix

/// A client of the week, which sets numbers, and looks up its keys. One request is under way at a time.
final class WeekClient {
    private enum Request {
        case set(key: Int, number: Int)
        case get(key: Int, asked: RunLoop.Instant)
    }

    private let loop: RunLoop
    private let name: String
    private let week: Week
    private var random: RunLoop.RandomNumbers
    private var keys = [KnownKey](repeating: KnownKey(), count: 4)
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
            underWay = .get(key: key, asked: loop.now)
            return connection.write("GET \(name):\(key)\r\n")
        }
        // Keys of even numbers expire.
        let life = key % 2 == 0 ? Int.random(in: 1...7_200, using: &random) : nil
        keys[key].send(next, life: life.map { .seconds($0) }, at: loop.now)
        week.hasAsked()
        underWay = .set(key: key, number: next)
        connection.write("SET \(name):\(key) \(next)\(life.map { " EX \($0)" } ?? "")\r\n")
        next += 1
    }

    /// - Returns: the number of bytes in a whole reply.
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
            // A store on a full disk refuses.
            if line == "+OK" {
                keys[key].acknowledge(number, at: loop.now)
                week.hasAcknowledged()
            } else {
                keys[key].refuse(number)
            }
        case .get(let key, let asked): check(key, value, asked: asked)
        case nil: week.fail("\(name) got a reply that it has not asked for: \(line)")
        }
        underWay = nil
        pause()
        return used
    }

    private func check(_ key: Int, _ value: Int?, asked: RunLoop.Instant) {
        let mayBe = keys[key].mayBe(
            value, asked: asked, answered: loop.now, allowance: week.allowance, isSafe: week.isSafe)
        if !mayBe {
            week.fail("\(name):\(key) is \(value.map { "\($0)" } ?? "gone") at \(loop.now), and was \(keys[key])")
        }
    }
}
