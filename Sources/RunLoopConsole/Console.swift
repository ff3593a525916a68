@_spi(Ports) public import RunLoopKit
internal import RunLoopUnix

/// Shows the loops of a process, live, to clients of a Unix socket.
///
/// ```swift
/// let console = try Console(at: "/run/daemon/console")
/// console.add(loop.remote, named: "main")
/// for (number, worker) in group.loops.enumerated() { console.add(worker, named: "worker \(number)") }
/// ```
///
/// A client that connects to the socket receives a ``Snapshot`` at each interval, as a line of JSON; the command
/// `runloop-top` draws them. Nothing else can be done through the socket, and its permissions are 600: only the user of
/// the process, and root, can connect.
///
/// A thread of its own serves the clients, so that a loop whose handler does not return is still shown, with that
/// handler. While there is a client, each loop is asked for a report at each interval, in whatever mode it runs;
/// answers take at most a twentieth of its time. A loop without a ``/RunLoopKit/FlightRecorder`` records meanwhile, at
/// the cost of a recorder. Without a client, a loop pays nothing; but then the console does not know the name of a
/// handler that was called before the first client came. Choose with ``Recording``.
///
/// A client that does not read misses snapshots; nothing is kept for it. Keep the console: its release closes the
/// socket. Consoles are `Sendable`.
public final class Console: Sendable {
    /// The time in which a console records the calls of handlers of a loop that has no recorder.
    public enum Recording: Sendable, Hashable {
        /// The console records while a client is connected.
        case whileWatched
        /// The console records as soon as the loop is added, so that a handler is known also if it is called before a
        /// client comes.
        case always
    }

    /// The path of the socket.
    public let path: String

    private let thread: LoopThread
    private let server: LoopBound<ConsoleServer>

    /// Creates a console and begins to listen. The calling thread waits until the socket is there.
    ///
    /// - Parameters:
    ///   - path: the path of the socket. A socket on which no process answers is replaced; any other file is not.
    ///   - interval: the time between snapshots, at least 10 ms.
    /// - Throws: ``/RunLoopUnix/SystemError``, for example with `EADDRINUSE` if another process listens there, or with
    ///   `ENOENT` if there is no such folder; `RunLoop.StartError` if the system has no descriptor or thread left.
    public init(at path: String, interval: Duration = .milliseconds(200)) throws {
        require(
            interval >= .milliseconds(10),
            "a console shows its loops every 10 ms or less often; it was given \(interval)")
        let address = try Endpoint(path: path)
        let thread = try LoopThread(starting: "console", in: RunLoop.currentWorld, isService: true) {
            $0.add(CustomSource(), forMode: .default)
        }
        do {
            server = try thread.remote.performAndWait { loop in
                LoopBound(try ConsoleServer(at: address, interval: interval, on: loop), loop: loop)
            }
        } catch {
            thread.stop()
            throw error
        }
        (self.path, self.thread) = (path, thread)
    }

    deinit {
        thread.stop()
    }

    /// Shows a loop from now on, until it ends. Any thread; harmless on a loop that has ended.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - name: its name on the console.
    ///   - recording: the time in which it records, if it has no recorder of its own.
    public func add(_ loop: RunLoop.Remote, named name: String, recording: Recording = .whileWatched) {
        server.remote.perform { [server] _ in
            server.value.add(loop, named: name, recordsAlways: recording == .always)
        }
    }

    /// Closes the socket and all connections, and waits until that is done. Harmless when repeated; not from the
    /// console's own thread.
    public func close() {
        thread.stop()
        thread.join()
    }
}
