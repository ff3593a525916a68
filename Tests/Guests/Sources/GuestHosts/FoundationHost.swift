import Dispatch
import Foundation

import class RunLoopKit.RunLoop

/// Foundation's run loop of the main thread, with a guest. On Linux it has no descriptor sources, but serves Dispatch's
/// main queue, which has.
final class FoundationHost: Host {
    let guest: RunLoop.Guest
    let name = "Foundation"
    private let watch: any DispatchSourceRead
    private var mode = RunLoop.Mode.default
    private var result = RunLoop.RunResult.timedOut

    init(_ guest: RunLoop.Guest) throws {
        self.guest = guest
        watch = DispatchSource.makeReadSource(fileDescriptor: try guest.fileDescriptor, queue: .main)
        watch.setEventHandler { [unowned self] in
            result = guest.run(in: mode)
        }
        watch.resume()
    }

    func run(in mode: RunLoop.Mode) -> RunLoop.RunResult {
        (self.mode, result) = (mode, .timedOut)
        guest.prepare(in: mode)
        while result == .timedOut { _ = Foundation.RunLoop.main.run(mode: .default, before: .distantFuture) }
        return result
    }
}
