internal import RunLoopCore
internal import RunLoopUnix

/// A process of a machine, as its neighbours on the machine see it.
protocol MachineProcess: AnyObject {
    var identifier: Int32 { get }
    /// The group, whose processes can all be signalled together.
    var group: Int32 { get }
    /// The path of its program, and the arguments; empty for a main process.
    var command: [String] { get }
    var workingDirectory: String { get }
    /// Its exit status; `nil` while it runs.
    var status: ChildProcess.ExitStatus? { get }
    /// Whether its number was given back.
    var isReaped: Bool { get }
    /// Whether the calling thread is one of its own.
    var isCurrent: Bool { get }
    /// The end of the process, to which descriptors of the process refer: readable once it has ended.
    var end: ProcessEnd { get }

    /// Takes a signal; 0 does nothing.
    func take(_ signal: Int32)
    /// Ends the process where it is, by a signal. On a thread of its own this does not return.
    func end(by signal: Signal)
    /// Ends the process because its machine has stopped, and notifies nobody. On a thread of its own this does not
    /// return.
    func vanish()

    // MARK: Children

    /// Starts the program at a path as its child.
    func start(_ path: String, _ child: ChildStart, streams: [OpenDescription]) -> any MachineProcess
    /// The child with that number.
    func child(_ identifier: Int32) -> (any MachineProcess)?
    /// Called when its parent no longer asks how it ends.
    func isAbandoned()
    /// Gives its number back.
    func reap()
}

/// The end of a process, to which descriptors of the process refer: readable once the process has ended.
final class ProcessEnd: OpenDescription {
    private(set) weak var process: (any MachineProcess)?

    init(_ process: any MachineProcess) {
        self.process = process
    }

    override var isPollable: Bool { true }
    override var readiness: DescriptorEvents { process?.status == nil && process != nil ? [] : .readable }
}
