internal import RunLoopKit

extension Listener {
    /// Waits for the next connection of a listener without a handler, and returns its socket, which the caller then
    /// owns; `nil` when the listener has been closed.
    package nonisolated(nonsending) func acceptSocket() async throws -> (descriptor: Int32, peer: Endpoint)? {
        guard let acceptance else {
            fatalError("a listener with a handler is not awaited; make it without the handler")
        }
        require(
            loop.isInstalled,
            "a listener is awaited on its loop's thread: in a task of the loop, or in one that prefers its executor")
        while true {
            if let socket = takeSocket() { return socket }
            guard isOpen else {
                if hasLostLoop { throw loop.remote.endError }
                return nil
            }
            guard !acceptance.isTaken else { throw RunLoop.WaitError.alreadyWaiting("connections") }
            awaitBegins()
            defer { awaitEnds() }
            try await acceptance.wait()
        }
    }
}
