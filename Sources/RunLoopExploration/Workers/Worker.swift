internal import Glibc

/// The process that runs the schedules of an exploration.
///
/// It is the same program as the one that explores, called again, and comes to the same exploration in it. What traps,
/// ends this process and not the one that explores.
enum Worker {
    /// What the environment tells the process: which exploration it is to serve.
    static let variable = "RUNLOOP_EXPLORES"

    /// The descriptors of such a process.
    enum Descriptor {
        static let requests: Int32 = 3, answers: Int32 = 4, journal: Int32 = 5
    }

    /// Which exploration this process serves, if it is such a process.
    static var served: String? { getenv(variable).map { String(cString: $0) } }

    /// Before the last answer of a process.
    static let lastMark = "last "

    /// With more threads than that a process ends, and another one goes on: those of hosts that have crashed stay.
    private static let mostThreads = 500

    /// Serves until nobody asks any more, and ends the process.
    ///
    /// - Parameter makeRunner: makes what runs the schedules, with where they are noted.
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
        // Each thread has a folder there, which is a link to it.
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
