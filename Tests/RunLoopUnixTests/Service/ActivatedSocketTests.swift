import Glibc
import TestSupport
import Testing

@testable import RunLoopUnix

@Suite("Socket activation")
struct ActivatedSocketTests {
    private var own: String { "\(getpid())" }

    /// Makes descriptors one after another, with numbers high enough to be unused: a listening socket, a datagram
    /// socket and a pipe.
    private func withDescriptors(_ body: (Int32) throws -> Void) rethrows {
        let stream = socket(AF_INET, SocketKind.stream, 0)
        precondition(listen(stream, 1) == 0, "not listening (errno \(errno))")
        let datagram = socket(AF_UNIX, SocketKind.datagrams, 0)
        var ends: [Int32] = [-1, -1]
        precondition(pipe(&ends) == 0, "no pipe (errno \(errno))")
        let first: Int32 = 700
        for (place, descriptor) in [stream, datagram, ends[0]].enumerated() {
            precondition(dup2(descriptor, first + Int32(place)) >= 0, "no room (errno \(errno))")
            close(descriptor)
        }
        defer {
            close(ends[1])
            for place in 0..<3 { close(first + Int32(place)) }
        }
        try body(first)
    }

    @Test("sockets come in order, with names and kinds, and are closed on exec")
    func sockets() throws {
        try withDescriptors { first in
            let sockets = try ActivatedSocket.all(
                environment: ["LISTEN_PID": own, "LISTEN_FDS": "3", "LISTEN_FDNAMES": "http::log"], first: first)
            #expect(sockets.map(\.fileDescriptor) == [first, first + 1, first + 2])
            #expect(sockets.map(\.name) == ["http", "", "log"])
            #expect(sockets.map(\.kind) == [.stream, .datagram, .noSocket])
            #expect(sockets.map(\.family) == [.inet, .unix, .other])
            #expect(sockets.map(\.isListening) == [true, false, false])
            #expect(sockets.allSatisfy { fcntl($0.fileDescriptor, F_GETFD) & FD_CLOEXEC != 0 })

            try sockets[0].expect(.stream)
            try sockets[0].expect(.stream, .inet, listening: true)
            let error = #expect(throws: ServiceManagerError.self) {
                try sockets[1].expect(.stream, .inet, listening: true)
            }
            #expect(
                error?.description
                    == "the socket \"\" is unix datagram not listening; inet stream listening was expected")
            #expect(throws: ServiceManagerError.self) { try sockets[2].expect(.stream) }

            let unnamed = try ActivatedSocket.all(environment: ["LISTEN_PID": own, "LISTEN_FDS": "2"], first: first)
            #expect(unnamed.map(\.name) == ["unknown", "unknown"])
        }
    }

    @Test("without a manager, or for another process, there are none")
    func none() throws {
        #expect(try ActivatedSocket.all(environment: [:]).isEmpty)
        #expect(try ActivatedSocket.all(environment: ["LISTEN_PID": "1", "LISTEN_FDS": "1"]).isEmpty)
        #expect(try ActivatedSocket.all(environment: ["LISTEN_FDS": "1"]).isEmpty)
        #expect(try ActivatedSocket.all(environment: ["LISTEN_PID": own, "LISTEN_FDS": "0"]).isEmpty)
    }

    @Test(
        "variables that cannot be are refused",
        arguments: [
            ["LISTEN_FDS": "x"], ["LISTEN_FDS": "-1"], ["LISTEN_FDS": "2147483647"], ["LISTEN_FDS": "99999999999"],
            ["LISTEN_PID": "x"], ["LISTEN_PID": "0"],
        ])
    func badVariables(changes: [String: String]) {
        let environment = ["LISTEN_PID": own, "LISTEN_FDS": "1"].merging(changes) { _, new in new }
        let error = #expect(throws: ServiceManagerError.self) { try ActivatedSocket.all(environment: environment) }
        guard case .invalidVariable(changes.keys.first, _, _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("names that do not match, and descriptors that are not open, are refused")
    func contradictions() {
        #expect(throws: ServiceManagerError.namesDoNotMatch(names: 2, sockets: 1)) {
            try ActivatedSocket.all(environment: ["LISTEN_PID": own, "LISTEN_FDS": "1", "LISTEN_FDNAMES": "a:b"])
        }
        #expect(throws: ServiceManagerError.notOpen(900)) {
            try ActivatedSocket.all(environment: ["LISTEN_PID": own, "LISTEN_FDS": "1"], first: 900)
        }
    }

    @Test("a process that was activated finds its sockets, once")
    func activatedProcess() async {
        await #expect(processExitsWith: .success) {
            // As a manager does between fork and exec, but with higher numbers, because other threads of a test
            // process use its first descriptors.
            let listener = socket(AF_UNIX, SocketKind.stream, 0)
            precondition(dup2(listener, 703) == 703 && dup2(listener, 704) == 704, "no room (errno \(errno))")
            setenv("LISTEN_PID", "\(getpid())", 1)
            setenv("LISTEN_FDS", "2", 1)
            setenv("LISTEN_FDNAMES", "control:data", 1)
            let sockets = try ActivatedSocket.all(environment: nil, first: 703)
            precondition(sockets.map(\.fileDescriptor) == [703, 704], "\(sockets)")
            precondition(sockets.map(\.name) == ["control", "data"], "\(sockets)")
            for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
                precondition(getenv(name) == nil, "\(name) is left")
            }
            let again = try ActivatedSocket.all(environment: nil, first: 703)
            precondition(again.isEmpty, "found twice")
            exit(0)
        }
    }
}
