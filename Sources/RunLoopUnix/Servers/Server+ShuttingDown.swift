@_spi(Ports) internal import RunLoopKit

extension Server {
    /// Shuts the server down: it accepts the connections that wait, listens no more, and lets each connection finish.
    ///
    /// A connection is read once more, so that a request that has arrived is answered. Then nothing more is read, and
    /// it is as if the peer had ended its side: tasks receive the end of the stream, ``Connection/endHandler`` is
    /// called, and without one the connection is finished as by ``Connection/finish(within:)``. A connection to which
    /// nothing has come yet has a second for its first bytes. An inherited descriptor is only closed: another process
    /// accepts the connections of its queue.
    ///
    /// Returns at once. Repeated calls are harmless, and each can bring a deadline. On the thread of the server's loop.
    ///
    /// - Parameters:
    ///   - deadline: the time after which ``close()`` is called; by default, there is no limit.
    ///   - completion: called once, when the last connection has closed, on the same thread, in the server's modes.
    public func shutDown(within deadline: Duration? = nil, completion: @escaping () -> Void = {}) {
        let limit = deadline.map { loop.perform(afterDelay: $0, inModes: common.modes) { [self] in close() } }
        stopAccepting { [self] in
            drain {
                limit?.cancel()
                completion()
            }
        }
    }

    /// Shuts the server down as the form with a completion does, and returns when the last connection has closed. On
    /// the thread of the server's loop.
    ///
    /// - Throws: `CancellationError`, after which the shut-down continues; `RunLoop.WaitError` if the loop has ended.
    public nonisolated(nonsending) func shutDown(within deadline: Duration? = nil) async throws {
        if loop.hasGone("a server") { throw await loop.remote.endErrorAfterTurn() }
        let wait = NamedWait(loop.remote, "waits until a server has shut down")
        shutDown(within: deadline) { wait.end() }
        try await wait.wait()
    }

    /// Stops listening and closes all connections at once, as ``Connection/close()`` does; tasks are cancelled.
    /// Connections that wait are reset. On the thread of the server's loop; on other loops of a group it happens in
    /// their next pass. Harmless when repeated.
    public func close() {
        isEnding = true
        for part in parts {
            if part.remote.isCurrent {
                part.value.close()
            } else {
                part.remote.perform(inModes: common.modes) { _ in part.value.close() }
            }
        }
        forgetWhenEmpty {}
    }

    /// Stops accepting, and calls `completion` when every accepted connection has come to its loop.
    func stopAccepting(_ completion: @escaping () -> Void) {
        isEnding = true
        onEachPart {
            $0.stopAccepting()
        } then: { [self] in
            // Connections that were accepted in turn were posted before.
            onEachPart { _ in
            } then: {
                completion()
            }
        }
    }

    /// Lets the connections finish, and calls `completion` when the last one has closed.
    func drain(_ completion: @escaping () -> Void) {
        onEachPart {
            $0.drain()
        } then: { [self] in
            forgetWhenEmpty(completion)
        }
    }

    private func forgetWhenEmpty(_ completion: @escaping () -> Void) {
        let bound = LoopBound((self, completion), loop: loop)
        common.census.whenEmpty { [common] in
            bound.remote.perform(inModes: common.modes) { _ in
                let (server, completion) = bound.value
                server.forget()
                completion()
            }
        }
    }

    private func onEachPart(
        _ body: @escaping @Sendable (ServerPart) -> Void, then completion: @escaping () -> Void
    ) {
        let bound = LoopBound(completion, loop: loop)
        let count = AtLast(parts.count) { [common] in
            bound.remote.perform(inModes: common.modes) { _ in bound.value() }
        }
        for part in parts {
            let end = count.makeEnd()
            part.remote.perform(inModes: common.modes) { _ in
                body(part.value)
                end.come()
            }
        }
    }
}
