internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// A process that runs schedules.
final class WorkerProcess {
    enum Outcome {
        /// An answer, after which the process ends if it is the last one.
        case answer(Message, isLast: Bool)
        /// The process has ended before it has answered, or was killed.
        case ended(Fault)
    }

    let journal: Journal
    private let identifier: pid_t
    private let requests: Int32
    private let answers: Int32
    private let errors: Int32
    private var hasEnded = false
    private var received: [UInt8] = []
    /// The last part of the process's standard error.
    private var said: [UInt8] = []

    init(_ command: [String], serving name: String) {
        // Not pipes: a write to a process that has ended would end this one too.
        func makePair() -> (own: Int32, other: Int32) {
            var ends = [Int32](repeating: 0, count: 2)
            let status = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends)
            require(status == 0, "an exploration needs sockets to a process: errno \(errno)")
            return (ends[0], ends[1])
        }
        let (requests, answers, errors) = (makePair(), makePair(), makePair())
        let memory = rlk_make_memory()
        require(memory >= 0, "an exploration needs memory that it shares with a process: errno \(errno)")
        journal = Journal(memory)

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        // Above the numbers that they get in the process.
        let sources = [requests.other, answers.other, memory].map { fcntl($0, F_DUPFD_CLOEXEC, 16) }
        let targets = [Worker.Descriptor.requests, Worker.Descriptor.answers, Worker.Descriptor.journal]
        for (source, target) in zip(sources, targets) { posix_spawn_file_actions_adddup2(&actions, source, target) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, errors.other, 2)
        let inherited = sequence(first: environ) { $0 + 1 }.prefix { $0.pointee != nil }.map { entry in
            String(cString: entry.pointee!)
        }
        // The exploration reports a trap itself, so a backtrace is not needed. Dictionaries have the same order in each
        // such process.
        let own = ["\(Worker.variable)=\(name)", "SWIFT_BACKTRACE=enable=no", "SWIFT_DETERMINISTIC_HASHING=1"]
        let others = inherited.filter { entry in
            !own.contains { entry.prefix { $0 != "=" } == $0.prefix { $0 != "=" } }
        }
        let arguments = command.map { strdup($0) } + [nil]
        let environment = (others + own).map { strdup($0) } + [nil]
        var identifier = pid_t()
        let status = posix_spawn(&identifier, "/proc/self/exe", &actions, nil, arguments, environment)
        require(status == 0, "an exploration could not call its program again: errno \(status)")
        self.identifier = identifier
        (self.requests, self.answers, self.errors) = (requests.own, answers.own, errors.own)
        posix_spawn_file_actions_destroy(&actions)
        for text in arguments + environment { free(text) }
        for descriptor in sources + [requests.other, answers.other, errors.other, memory] { close(descriptor) }
        _ = fcntl(errors.own, F_SETFL, O_NONBLOCK)
    }

    deinit {
        for descriptor in [requests, answers, errors] { close(descriptor) }
        if !hasEnded {
            kill(identifier, SIGKILL)
            waitpid(identifier, nil, 0)
        }
    }

    private static let longestStart = Duration.seconds(300)

    /// - Parameter limit: the longest time without progress.
    func ask(_ message: Message, within limit: Duration) -> Outcome {
        let line = Array((message.line + "\n").utf8)
        var sent = 0
        // The process reads the whole message before it answers, so this does not block for long.
        while sent < line.count {
            let count = line[sent...].withUnsafeBytes {
                send(requests, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return .ended(end()) }
            sent += count
        }
        let asked = ContinuousClock.now
        var (number, since) = (journal.number, asked)
        while true {
            if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: received[..<end], as: UTF8.self)
                received.removeFirst(end + 1)
                let isLast = line.hasPrefix(Worker.lastMark)
                guard let answer = Message(isLast ? line.dropFirst(Worker.lastMark.count) : line[...]) else {
                    fatalError("the process of an exploration said: \(line)")
                }
                return .answer(answer, isLast: isLast)
            }
            var polled = [
                pollfd(fd: answers, events: Int16(POLLIN), revents: 0),
                pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
            ]
            poll(&polled, 2, 100)
            _ = Self.read(errors, into: &said)
            said.removeFirst(max(0, said.count - 65_536))
            if polled[0].revents != 0, Self.read(answers, into: &received) == 0 { return .ended(end()) }
            let now = ContinuousClock.now
            if journal.number != number || !journal.hasBegun { (number, since) = (journal.number, now) }
            // The program may take long to reach the exploration.
            if now - since > limit || !journal.hasBegun && now - asked > Self.longestStart {
                kill(identifier, SIGKILL)
                return .ended(Fault(.hang, "the run has not ended in \(limit)"))
            }
        }
    }

    private static func read(_ descriptor: Int32, into bytes: inout [UInt8]) -> Int {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = Glibc.read(descriptor, &buffer, buffer.count)
        if count > 0 { bytes += buffer[..<count] }
        return count
    }

    /// The words in a line that gives the reason for a trap.
    private static let trapWords = ["Fatal error: ", "Precondition failed: ", "Assertion failed: "]

    /// The fault of a process that has begun no run.
    static let neverCame = Fault(.trap, "the program, started again, ended before it reached the exploration")

    /// Determines why the process has ended.
    private func end() -> Fault {
        var status: Int32 = 0
        waitpid(identifier, &status, 0)
        hasEnded = true
        while Self.read(errors, into: &said) > 0 {}
        let lines = String(decoding: said, as: UTF8.self).split(separator: "\n")
        guard journal.hasBegun else { return Self.neverCame }
        let (signal, words) = (status & 0x7f, lines.last { line in Self.trapWords.contains { line.contains($0) } })
        let end = signal == 0 ? "with status \(status >> 8 & 0xff)" : "by signal \(signal)"
        return Fault(.trap, words.map(String.init) ?? "the process that ran it has ended \(end)")
    }
}
