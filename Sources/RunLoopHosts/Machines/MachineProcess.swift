internal import RunLoopCore
internal import RunLoopUnix

/// A process of a machine, as others see it that are there.
protocol MachineProcess: AnyObject {
    var identifier: Int32 { get }
    /// What can send signals to all of them.
    var group: Int32 { get }
    /// The path of its program, and the arguments; empty for a main process.
    var command: [String] { get }
    var workingDirectory: String { get }
    /// How it has ended; `nil` while it runs.
    var status: ChildProcess.ExitStatus? { get }
    /// Whether its number was given back.
    var isReaped: Bool { get }
    /// Whether the calling thread is one of its own.
    var isCurrent: Bool { get }
    /// What descriptors of it lead to: readable once it has ended.
    var end: ProcessEnd { get }

    /// A signal comes to it; 0 does nothing.
    func take(_ signal: Int32)
    /// It ends where it is, by a signal. On a thread of its own this does not return.
    func end(by signal: Signal)
    /// Its machine has stopped: nobody is told. On a thread of its own this does not return.
    func vanish()

    // MARK: Children

    /// Starts the program of a path as its child.
    func start(_ path: String, _ child: ChildStart, streams: [OpenDescription]) -> any MachineProcess
    /// The child of that number.
    func child(_ identifier: Int32) -> (any MachineProcess)?
    /// Nobody asks how it ends.
    func isAbandoned()
    /// Its number is given back.
    func reap()
}

/// What descriptors of a process lead to: readable once that has ended.
final class ProcessEnd: OpenDescription {
    private(set) weak var process: (any MachineProcess)?

    init(_ process: any MachineProcess) {
        self.process = process
    }

    override var isPollable: Bool { true }
    override var readiness: DescriptorEvents { process?.status == nil && process != nil ? [] : .readable }
}
