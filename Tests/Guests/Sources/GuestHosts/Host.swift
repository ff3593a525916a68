import RunLoopKit

/// A loop of another library with a guest in it.
protocol Host: AnyObject {
    init(_ guest: RunLoop.Guest) throws
    var guest: RunLoop.Guest { get }
    var name: String { get }

    /// Waits and serves until the guest has stopped or finished.
    func run(in mode: RunLoop.Mode) -> RunLoop.RunResult
}
