package import RunLoopCore

/// The system as streams, listeners and connections see it: the real one, or that of a simulated host.
///
/// Its calls are the system's, under its names where they are words. They return -1 for a failure, and say in `errno` why.
/// Only those of files may block. Any thread.
package protocol SystemCalls: AnyObject, Sendable {
    // MARK: Any descriptor

    func isSocket(_ descriptor: Int32) -> Bool
    /// Whether `splice` moves bytes from socket to socket.
    var splices: Bool { get }
    /// Makes it non-blocking, and has it closed on `exec`.
    func prepare(_ descriptor: Int32)
    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer) -> Int
    /// Raises no signal if nobody reads any more.
    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int
    func close(_ descriptor: Int32)
    /// A descriptor of no use but that it can be closed to make room for another.
    func openReserve() -> Int32

    // MARK: Sockets

    /// A stream socket that does not block.
    func socket(_ family: Int32) -> Int32
    func setOption(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32)
    /// The value of an option; `nil` if the socket has none of that kind.
    func option(_ descriptor: Int32, _ level: Int32, _ option: Int32) -> Int32?
    func bind(_ descriptor: Int32, to address: Endpoint) -> Int32
    func listen(_ descriptor: Int32, backlog: Int32) -> Int32
    /// The connection does not block.
    func accept(_ descriptor: Int32, peer: inout Endpoint) -> Int32
    func connect(_ descriptor: Int32, to address: Endpoint) -> Int32
    func localAddress(of descriptor: Int32) -> Endpoint
    /// Whether something has come that is unread.
    func hasInput(_ descriptor: Int32) -> Bool
    func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int
    func endWriting(_ descriptor: Int32)
    /// The number of written bytes that the peer's system does not have yet.
    func unsentOutput(_ descriptor: Int32) -> Int
    /// Has the peer see `ECONNRESET` when the socket is closed, if it is one of TCP.
    func resetWhenClosed(_ descriptor: Int32)

    /// Whether it is to choose among several sockets at one port: not if each run of a simulation is to be the same.
    func spreadsConnections(of loop: RunLoop) -> Bool

    // MARK: Paths of sockets

    /// Which socket a path leads to; `nil` if it leads to none.
    func socketFile(at path: String) -> SocketFile?
    func setPermissions(_ permissions: UInt32, of descriptor: Int32) -> Int32
    func setPermissions(_ permissions: UInt32, at path: String) -> Int32

    // MARK: Files

    /// Follows no symbolic link, and is closed on `exec`.
    func open(_ path: String, flags: Int32) -> Int32
    /// Takes the lock of an open file, unless another process has it.
    func lock(_ descriptor: Int32) -> Int32
    /// Gives it back, also if a child that is about to begin has the file open for a moment.
    func unlock(_ descriptor: Int32)
    /// Whether a path leads to an open file.
    func leads(_ path: String, to descriptor: Int32) -> Bool
    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer, at offset: Int) -> Int
    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int
    func truncate(_ descriptor: Int32, to length: Int) -> Int32
    func sync(_ descriptor: Int32) -> Int32
    /// All bytes of a regular file, until they are unmapped; `nil` for a failure.
    func map(_ descriptor: Int32) -> UnsafeRawBufferPointer?
    func unmap(_ contents: UnsafeRawBufferPointer)
    func exists(_ path: String) -> Bool
    func rename(_ path: String, to newPath: String) -> Int32
    func removeFile(at path: String) -> Int32
    func syncDirectory(_ path: String) -> Int32

    // MARK: File events

    /// A descriptor that tells what happens to files.
    func openFileWatcher() -> Int32
    /// Watches a path, unless what it leads to is watched already.
    ///
    /// - Returns: the number of the watch.
    func watch(_ path: String, with descriptor: Int32, for mask: UInt32) -> Int32
    func unwatch(_ number: Int32, with descriptor: Int32)

    // MARK: Children

    /// The ends of a new pipe; `nil` for a failure.
    func pipe() -> (reading: Int32, writing: Int32)?
    /// One more descriptor for the same thing, beyond the standard ones.
    func duplicate(_ descriptor: Int32) -> Int32
    /// The number of a new child. Returns when its program has begun.
    func start(_ child: ChildStart) throws(ChildStart.Failure) -> Int32
    /// A descriptor that is readable once a child has ended.
    func openProcess(_ identifier: Int32) -> Int32
    func send(_ signal: Int32, toProcess descriptor: Int32) -> Int32
    /// Sends a signal to a process, or to a group if the number is negative.
    func kill(_ identifier: Int32, _ signal: Int32) -> Int32
    /// Looks at a child by its descriptor or, if that is negative, by its number.
    func state(ofChild identifier: Int32, _ descriptor: Int32, reaps: Bool) -> ChildState
    /// Has a child reaped when it ends, by nobody who asks.
    func reapLater(_ identifier: Int32, _ descriptor: Int32)

    // MARK: The time of a simulation

    /// Keeps it while something of the system's is awaited; `nil` for a system whose time is that of the simulation.
    func holdTime(for what: @autoclosure () -> String, on loop: RunLoop) -> (any TimeHold)?
    /// What does so for a socket.
    func makeHolds(for socket: Int32, on loop: RunLoop, _ origin: RunLoop.Origin) -> StreamHolds?

    // MARK: The process

    var processIdentifier: Int32 { get }
    /// Microseconds on the clock that nobody sets.
    var monotonicMicroseconds: Int64 { get }
    /// The environment, in lines such as `HOME=/root`, each with a zero at its end.
    var environment: [[CChar]] { get }
    /// A variable of the environment.
    func variable(_ name: String) -> String?
    func removeVariable(_ name: String)
    /// From now on a signal is counted and does nothing else.
    func count(signal: Int32) throws(SystemError) -> any SignalCounter
    /// From now on a signal does nothing.
    func ignore(signal: Int32) -> Int32
    /// A socket for datagrams to the service manager.
    func openNotifySocket() -> Int32
    /// - Parameter address: a `sockaddr_un`.
    func notify(_ descriptor: Int32, at address: [UInt8], _ message: [UInt8]) -> Int
}

/// Counts a signal. It belongs to a loop's thread.
package protocol SignalCounter: AnyObject {
    /// Readable while something was counted.
    var descriptor: Int32 { get }
    /// How often the signal came since it was asked last.
    func take() -> Int
    /// Makes the descriptor readable once.
    func prime()
    /// The signal does what it did before. Harmless when repeated.
    func end()
}

/// A socket that a path leads to: another one may come to its place.
package struct SocketFile: Equatable {
    let device: UInt64
    let inode: UInt64

    package init(device: UInt64, inode: UInt64) {
        (self.device, self.inode) = (device, inode)
    }
}

extension SystemCalls {
    /// Removes the path if it still leads to this file.
    func remove(_ file: SocketFile, at path: String) {
        if socketFile(at: path) == file { _ = removeFile(at: path) }
    }
}
