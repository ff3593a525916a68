internal import Glibc
internal import RunLoopSimulation

/// The process that runs the schedules of an exploration.
///
/// The process runs the same program as the exploring process, and reaches the same exploration in it. A trap ends this
/// process, and the exploring process survives.
enum Worker {
    /// The environment variable that names the exploration to serve.
    static let variable = "RUNLOOP_EXPLORES"

    /// The descriptors of the process.
    enum Descriptor {
        static let requests: Int32 = 3, answers: Int32 = 4, journal: Int32 = 5
    }

    /// The name of the exploration that this process serves, if any.
    static var served: String? { getenv(variable).map { String(cString: $0) } }

    /// The mark before the last answer of a process.
    static let lastMark = "last "

    /// The growth of the process, in bytes, after which it ends and another one continues. It grows with each crash,
    /// because the objects of a killed process are never released.
    private static let mostGrowth = 256 << 20

    /// Serves requests until no more come, and ends the process.
    ///
    /// - Parameter makeRunner: makes the runner of the schedules, with the journal in which it notes them.
    static func serve(_ makeRunner: (Journal) -> LocalRunner) -> Never {
        var runner = makeRunner(Journal(Descriptor.journal))
        guard let requests = fdopen(Descriptor.requests, "r"), let answers = fdopen(Descriptor.answers, "w") else {
            fatalError("a worker of an exploration has lost the sockets to the exploring process")
        }
        let mostMemory = residentMemory + mostGrowth
        var line: UnsafeMutablePointer<CChar>?
        var size = 0
        while getline(&line, &size, requests) > 0, let text = line.map({ String(cString: $0) }),
            let message = Message(text.dropLast())
        {
            let answer = answer(to: message, &runner).line
            let isLast = residentMemory > mostMemory
            fputs((isLast ? lastMark : "") + answer + "\n", answers)
            fflush(answers)
            if isLast { break }
        }
        _exit(0)
    }

    /// The size of the process's memory that is not swapped out, in bytes.
    private static var residentMemory: Int {
        var text = [UInt8](repeating: 0, count: 128)
        let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        let length = max(0, read(file, &text, text.count))
        let numbers = String(decoding: text[..<length], as: UTF8.self).split(separator: " ")
        return numbers.count > 1 ? Int(numbers[1])! * sysconf(Int32(_SC_PAGESIZE)) : 0
    }

    private static func answer(to message: Message, _ runner: inout LocalRunner) -> Message {
        // The exploring process takes the marks from the journal.
        var marks = Simulation.Marks()
        switch message {
        case .explore(let numbers, var length):
            guard let (number, run) = runner.explore(numbers, length: &length, marks: &marks) else {
                return .passed(length: length)
            }
            return .run(run, number: number, length: length)
        case .replay(let token, let recording):
            return .run(runner.replay(token, recording))
        case .vary(let variation, let length):
            return .run(runner.vary(variation, length: length))
        case .follow(let path):
            let (run, branches) = runner.follow(path, marks: &marks)
            return .run(run, branches: branches)
        case .passed, .run: fatalError("a worker of an exploration was sent an answer")
        }
    }
}
