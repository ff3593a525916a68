internal import RunLoopKit

extension Listener {
    /// Waits for the next connection of a listener without a handler, and returns its socket, which the caller then
    /// owns; `nil` when the listener has been closed.
    package nonisolated(nonsending) func acceptSocket() async throws -> (descriptor: Int32, peer: Endpoint)? {
        guard let acceptance else {
            fatalError("a listener with a handler is not awaited; make it without the handler")
        }
        loop.checkAwaited("a listener")
        while true {
            if let socket = takeSocket() { return socket }
            guard isOpen else {
                if hasLostLoop { throw loop.remote.endError }
                return nil
            }
            try acceptance.admit(for: "connections")
            awaitBegins()
            defer { awaitEnds() }
            try await acceptance.wait()
        }
    }
}
