@_spi(Ports) public import RunLoopCore

/// The system calls of the real system or of a simulated host. Names are the system's where those are words. A call
/// that fails returns -1, with the reason in `errno`. Only calls on files may block. Any thread.
@_spi(Ports) public protocol SystemCalls: AnyObject, Sendable {
    // MARK: Any descriptor

    /// Returns whether a descriptor is a socket.
    func isSocket(_ descriptor: Int32) -> Bool
    /// True if `splice` can move bytes from socket to socket.
    var splices: Bool { get }
    /// Makes a descriptor non-blocking and close-on-exec.
    func prepare(_ descriptor: Int32)
    /// Reads bytes, and returns their number: 0 at the end.
    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer) -> Int
    /// Writes bytes, without raising a signal if no reader is left.
    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int
    /// Closes a descriptor.
    func close(_ descriptor: Int32)
    /// Closes a descriptor shared by several threads, on the last thread to release it.
    func release(_ descriptor: Int32, unlocking isLocked: Bool)
    /// Opens a reserve descriptor, which can be closed to make room for another.
    func openReserve() -> Int32

    // MARK: Sockets

    /// Opens a non-blocking stream socket.
    func socket(_ family: Int32) -> Int32
    /// Sets an option of a socket to a number.
    @discardableResult
    func setOption(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) -> Int32
    /// Returns the value of an option; `nil` if the socket does not have the option.
    func option(_ descriptor: Int32, _ level: Int32, _ option: Int32) -> Int32?
    /// Gives a socket its own address.
    func bind(_ descriptor: Int32, to address: Endpoint) -> Int32
    /// Makes a socket listen.
    func listen(_ descriptor: Int32, backlog: Int32) -> Int32
    /// Accepts a connection and makes it non-blocking.
    func accept(_ descriptor: Int32, peer: inout Endpoint) -> Int32
    /// Begins to connect a socket: -1 with `EINPROGRESS` if the outcome comes later, when the socket is writable.
    func connect(_ descriptor: Int32, to address: Endpoint) -> Int32
    /// Returns the address of a socket; an empty one if there is none.
    func localAddress(of descriptor: Int32) -> Endpoint
    /// Returns the address of the peer; an empty one if there is none.
    func peerAddress(of descriptor: Int32) -> Endpoint
    /// Returns whether a socket has bytes to read.
    func hasInput(_ descriptor: Int32) -> Bool
    /// Reads bytes from a socket, and returns their number: 0 at the end.
    func receive(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer) -> Int
    /// Writes bytes to a socket without raising a signal, and returns how many it took.
    func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int
    /// Sends up to 1,024 pieces of bytes with one call.
    func send(_ descriptor: Int32, gathering pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> Int
    /// Ends the output of a socket, whose input continues.
    func endWriting(_ descriptor: Int32)
    /// Returns the number of written bytes that the peer's system does not yet have.
    func unsentOutput(_ descriptor: Int32) -> Int
    /// Makes the peer of a TCP socket see `ECONNRESET` when the socket is closed.
    func resetWhenClosed(_ descriptor: Int32)

    /// Returns whether the system may spread connections over several sockets at one port. Not in a simulation, whose
    /// runs must be identical.
    func spreadsConnections(of loop: RunLoop) -> Bool

    // MARK: Datagrams

    /// Opens a non-blocking datagram socket.
    func datagramSocket(_ family: Int32) -> Int32
    /// Receives datagrams into the slots while there are any: one per slot, or several that arrived in one piece.
    ///
    /// - Parameter withFacts: whether the slots receive the metadata that the socket's options request; not for a Unix
    ///   socket.
    func receive(_ descriptor: Int32, into slots: UnsafeMutableBufferPointer<DatagramSlot>, withFacts: Bool) -> Int
    /// Sends the datagrams of the slots, up to the first that fails.
    ///
    /// - Parameter inSegments: whether the system receives datagrams of equal length to one peer in one piece, which
    ///   fails as a whole.
    func send(_ descriptor: Int32, _ slots: UnsafeMutableBufferPointer<DatagramSlot>, inSegments: Bool) -> Int
    /// Removes and returns the oldest error from the error queue of a UDP socket (`IP_RECVERR`).
    func takeQueuedError(_ descriptor: Int32) -> QueuedError?
    /// Joins a multicast group, or leaves it.
    func changeMembership(_ descriptor: Int32, joins: Bool, group: Endpoint, interface: String?) -> Int32

    // MARK: Paths of sockets

    /// Returns the identity of the socket at a path; `nil` if there is none.
    func socketFile(at path: String) -> SocketFile?
    /// Sets the permissions of the file that a descriptor has open.
    func setPermissions(_ permissions: UInt32, of descriptor: Int32) -> Int32
    /// Sets the permissions of the file at a path.
    func setPermissions(_ permissions: UInt32, at path: String) -> Int32

    // MARK: Files

    /// Opens a file, to be closed on `exec`. Does not follow a symbolic link, or wait for the other end of a FIFO.
    func open(_ path: String, flags: Int32) -> Int32
    /// Acquires the lock of an open file unless another process has it.
    func lock(_ descriptor: Int32) -> Int32
    /// Releases the lock, even if a starting child briefly has the file open.
    func unlock(_ descriptor: Int32)
    /// Returns whether a path leads to the file that a descriptor has open.
    func leads(_ path: String, to descriptor: Int32) -> Bool
    /// Reads bytes at an offset, and returns their number: 0 at the end.
    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer, at offset: Int) -> Int
    /// Writes at an offset, or at the end of a file that was opened with `O_APPEND`.
    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int
    /// Returns the number of bytes of a regular file; -1 for a failure.
    func size(of descriptor: Int32) -> Int
    /// Makes a file as long as `length`.
    func truncate(_ descriptor: Int32, to length: Int) -> Int32
    /// Waits until a file's bytes are on the disk.
    func sync(_ descriptor: Int32) -> Int32
    /// Maps all bytes of a regular file into memory; `nil` for a failure.
    func map(_ descriptor: Int32) -> UnsafeRawBufferPointer?
    /// Ends a mapping that `map(_:)` has made.
    func unmap(_ contents: UnsafeRawBufferPointer)
    /// Returns the bytes of a regular file, up to one byte beyond the limit; `nil` for a failure. Follows symbolic
    /// links.
    func contentsOfFile(_ path: String, upTo most: Int) -> [UInt8]?
    /// Returns whether there is a file at a path.
    func exists(_ path: String) -> Bool
    /// Gives a file another path, where it replaces what is there.
    func rename(_ path: String, to newPath: String) -> Int32
    /// Removes a file or a socket at a path.
    func removeFile(at path: String) -> Int32
    /// Creates a directory that only its owner can access.
    func createDirectory(_ path: String) -> Int32
    /// Removes an empty directory.
    func removeDirectory(_ path: String) -> Int32
    /// Returns the names in a directory, in any order; `nil` for a failure.
    func contentsOfDirectory(_ path: String) -> [String]?
    /// Waits until the names in a directory are on the disk.
    func syncDirectory(_ path: String) -> Int32

    // MARK: File events

    /// Opens a descriptor from which the records of file events are read, as from inotify.
    func openFileWatcher() -> Int32
    /// Watches a path and returns the number of the watch; fails if its file is already watched.
    func watch(_ path: String, with descriptor: Int32, for mask: UInt32) -> Int32
    /// Ends a watch, by its number.
    func unwatch(_ number: Int32, with descriptor: Int32)

    // MARK: Children

    /// Creates a pipe and returns its ends; `nil` for a failure.
    func pipe() -> (reading: Int32, writing: Int32)?
    /// Duplicates a descriptor; the duplicate is none of the standard descriptors.
    func duplicate(_ descriptor: Int32) -> Int32
    /// Starts a child, and returns its number once its program has begun.
    func start(_ child: ChildStart) throws(ChildStart.Failure) -> Int32
    /// Opens a descriptor that is readable once a child has ended.
    func openProcess(_ identifier: Int32) -> Int32
    /// Sends a signal to the process that a descriptor of `openProcess(_:)` stands for.
    func send(_ signal: Int32, toProcess descriptor: Int32) -> Int32
    /// Sends a signal to a process, or to a process group if the number is negative.
    func kill(_ identifier: Int32, _ signal: Int32) -> Int32
    /// Returns the status of a child, found by its descriptor or, if that is negative, by its number: `nil` while the
    /// child runs, and `lost` if the process no longer has such a child.
    func state(ofChild identifier: Int32, _ descriptor: Int32, reaps: Bool) -> ChildProcess.ExitStatus?
    /// Arranges for a child to be reaped when it ends.
    func reapLater(_ identifier: Int32, _ descriptor: Int32)
    /// Reaps the ended children that these calls have not started.
    func reapOrphans()

    // MARK: The time of a simulation

    /// Holds simulated time while an event of the real system is awaited; `nil` for a system in simulated time.
    func holdTime(for what: @autoclosure () -> String, on loop: RunLoop) -> (any TimeHold)?
    /// Returns the holds on simulated time that a stream on this socket needs; `nil` on real time, and for a simulated
    /// socket.
    func makeHolds(for socket: Int32, on loop: RunLoop, _ origin: RunLoop.Origin) -> StreamHolds?

    // MARK: The process

    /// The number of the process.
    var processIdentifier: Int32 { get }
    /// The time of `CLOCK_MONOTONIC`.
    var monotonicMicroseconds: Int64 { get }
    /// The environment, in lines such as `HOME=/root`, each with a terminating zero byte.
    var environment: [[CChar]] { get }
    /// Returns a variable of the environment; `nil` if it is not set.
    func variable(_ name: String) -> String?
    /// Removes a variable from the environment.
    func removeVariable(_ name: String)
    /// Returns a user of the system, with all groups.
    func user(named name: String) throws(SystemError) -> ChildProcess.User
    /// Starts counting a signal, which then has no other effect.
    func count(signal: Int32) throws(SystemError) -> any SignalCounter
    /// Gives a signal no effect from now on.
    func ignore(signal: Int32) -> Int32
    /// Opens a socket for datagrams to the service manager.
    func openNotifySocket() -> Int32
    /// - Parameter address: a `sockaddr_un`.
    func notify(_ descriptor: Int32, at address: [UInt8], _ message: [UInt8]) -> Int
}

/// A counter of a signal's deliveries. Belongs to a loop's thread.
@_spi(Ports) public protocol SignalCounter: AnyObject {
    /// The descriptor that is readable while the count is above zero.
    var descriptor: Int32 { get }
    /// Returns the number of signals since the last call.
    func take() -> Int
    /// Makes the descriptor readable once.
    func prime()
    /// Restores the former effect of the signal. Repeated calls have no effect.
    func end()
}

/// The identity of the socket at a path, where another socket may replace it.
@_spi(Ports) public struct SocketFile: Equatable {
    /// The device of the file.
    public let device: UInt64
    /// The number of the file on its device.
    public let inode: UInt64

    /// Creates an identity from its numbers.
    public init(device: UInt64, inode: UInt64) {
        (self.device, self.inode) = (device, inode)
    }
}

@_spi(Ports) extension SystemCalls {
    public func receive(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer) -> Int {
        read(descriptor, into: room)
    }

    public func release(_ descriptor: Int32, unlocking isLocked: Bool = false) {
        if isLocked { unlock(descriptor) }
        close(descriptor)
    }

    /// Removes the path if it still leads to this file.
    func remove(_ file: SocketFile, at path: String) {
        if socketFile(at: path) == file { _ = removeFile(at: path) }
    }

    func set<Value>(_ option: SocketOption<Value>, of descriptor: Int32, to value: Value) throws(SystemError) {
        guard setOption(descriptor, option.level, option.name, option.encode(value)) == 0 else {
            throw .last("set an option of the socket")
        }
    }

    func value<Value>(of option: SocketOption<Value>, of descriptor: Int32) throws(SystemError) -> Value {
        guard let value = self.option(descriptor, option.level, option.name) else {
            throw .last("read an option of the socket")
        }
        return option.decode(value)
    }
}
