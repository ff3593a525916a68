import RunLoopExploration

// Models for histories that several programs record. The others are beside their programs.

/// A value that is written, read, and set if it has an expected value.
struct RegisterModel: SequentialModel {
    enum Operation: Sendable { case read, write(Int), set(Int, from: Int) }
    enum Outcome: Hashable, Sendable { case value(Int), done, refused }
    var value = 0

    mutating func perform(_ operation: Operation) -> Outcome {
        switch operation {
        case .read: return .value(value)
        case .write(let new): value = new
        case .set(let new, let expected):
            guard value == expected else { return .refused }
            value = new
        }
        return .done
    }
}

/// A set of numbers; each number is a part of it.
struct SetModel: SequentialModel {
    enum Operation: Sendable { case add(Int), remove(Int), contains(Int) }
    var isThere = false

    /// - Returns: `true` if the number was there before.
    mutating func perform(_ operation: Operation) -> Bool {
        defer {
            switch operation {
            case .add: isThere = true
            case .remove: isThere = false
            case .contains: break
            }
        }
        return isThere
    }

    static func part(of operation: Operation) -> String? {
        switch operation {
        case .add(let number), .remove(let number), .contains(let number): "\(number)"
        }
    }
}

/// A list of jobs: its owner pushes and pops at its end, and thieves take from its beginning.
struct JobsModel: SequentialModel {
    enum Operation: Sendable { case push(Int), pop, steal }
    var jobs: [Int] = []

    mutating func perform(_ operation: Operation) -> Int? {
        switch operation {
        case .push(let job):
            jobs.append(job)
            return job
        case .pop: return jobs.popLast()
        case .steal: return jobs.isEmpty ? nil : jobs.removeFirst()
        }
    }
}

/// A lock whose holder may lose it because its time is over.
struct LeaseModel: SequentialModel {
    enum Operation: Sendable { case acquire(by: Int), release(by: Int), expire(of: Int) }
    var holder: Int?

    /// - Returns: `true` if the client has acquired the lock, or has lost it.
    mutating func perform(_ operation: Operation) -> Bool {
        switch operation {
        case .acquire(let client):
            guard holder == nil else { return false }
            holder = client
        case .release(let client), .expire(let client):
            guard holder == client else { return false }
            holder = nil
        }
        return true
    }
}

/// A counter.
struct CounterModel: SequentialModel {
    enum Operation: Sendable { case increment, read }
    var count = 0

    mutating func perform(_ operation: Operation) -> Int {
        if case .increment = operation { count += 1 }
        return count
    }
}

/// Two accounts.
struct AccountsModel: SequentialModel {
    enum Operation: Sendable { case transfer(Int), read }
    var balances = [100, 0]

    mutating func perform(_ operation: Operation) -> [Int] {
        guard case .transfer(let amount) = operation else { return balances }
        balances = [balances[0] - amount, balances[1] + amount]
        return []
    }
}

/// A list of records, to which others are appended.
struct LogModel: SequentialModel {
    enum Operation: Sendable { case append(Int), read }
    var records: [Int] = []

    mutating func perform(_ operation: Operation) -> [Int] {
        guard case .append(let record) = operation else { return records }
        records.append(record)
        return []
    }
}
