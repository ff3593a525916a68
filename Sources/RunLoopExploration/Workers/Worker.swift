internal import Glibc

/// The process that runs the schedules of an exploration.
///
/// It runs the same program as the exploring process, and reaches the same exploration in it. A trap ends this process,
/// and the exploring process survives.
enum Worker {
    /// The environment variable that names the exploration to serve.
    static let variable = "RUNLOOP_EXPLORES"

    /// The descriptors of such a process.
    enum Descriptor {
        static let requests: Int32 = 3, answers: Int32 = 4, journal: Int32 = 5
    }

    /// The name of the exploration that this process serves, if it serves one.
    static var served: String? { getenv(variable).map { String(cString: $0) } }

    /// The mark before the last answer of a process.
    static let lastMark = "last "

    /// The number of threads above which a process ends and another one continues: threads of crashed hosts stay.
    private static let mostThreads = 500

    /// Serves until no more requests come, and ends the process.
    ///
    /// - Parameter makeRunner: makes the runner of the schedules, with the journal in which it notes them.
    static func serve(_ makeRunner: (Journal) -> LocalRunner) -> Never {
        let runner = makeRunner(Journal(Descriptor.journal))
        guard let requests = fdopen(Descriptor.requests, "r"), let answers = fdopen(Descriptor.answers, "w") else {
            fatalError("an exploration was begun for another process, which is not there")
        }
        var line: UnsafeMutablePointer<CChar>?
        var size = 0
        while getline(&line, &size, requests) > 0, let text = line.map({ String(cString: $0) }),
            let message = Message(text.dropLast())
        {
            let answer = answer(to: message, runner).line
            let isLast = threadCount > mostThreads
            fputs((isLast ? lastMark : "") + answer + "\n", answers)
            fflush(answers)
            if isLast { break }
        }
        _exit(0)
    }

    private static var threadCount: Int {
        var status = stat()
        // Each thread has a folder there, which adds a link.
        return stat("/proc/self/task", &status) == 0 ? Int(status.st_nlink) - 2 : 0
    }

    private static func answer(to message: Message, _ runner: LocalRunner) -> Message {
        switch message {
        case .explore(let numbers, var length):
            guard let (number, run) = runner.explore(numbers, length: &length) else { return .passed(length: length) }
            return .run(run, number: number, length: length)
        case .replay(let token, let isDrawn):
            return .run(runner.replay(token, isDrawn: isDrawn), number: 0, length: 0)
        case .passed, .run: fatalError("an exploration asks and does not answer")
        }
    }
}
