import CShims
import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// How a child begins.
@Suite("Spawning", .timeLimit(.minutes(15)))
struct SpawnTests {
    @Test("a child is found by its path or in PATH, and is given its arguments")
    func arguments() throws {
        let lines = ["", "a b", "\"'$x", "ä"]
        let byPath = try ChildProcess.spawn(
            .path("/usr/bin/env"), arguments: ["printf", "%s\\n"] + lines, standardOutput: .pipe)
        #expect(try text(of: byPath.standardOutput) == lines.joined(separator: "\n") + "\n")
        let byName = try ChildProcess.spawn(.named("printf"), arguments: ["%s\\n"] + lines, standardOutput: .pipe)
        #expect(try text(of: byName.standardOutput) == lines.joined(separator: "\n") + "\n")
        #expect(try end(of: byPath) == .exited(0))
        #expect(try end(of: byName).isSuccess)
    }

    @Test("what is not there is an error and no child")
    func missing() {
        #expect(throws: SystemError("spawn /no/such/program", errno: ENOENT)) {
            try ChildProcess.spawn(.path("/no/such/program"))
        }
        #expect(throws: SystemError("spawn no-such-program", errno: ENOENT)) {
            try ChildProcess.spawn(.named("no-such-program"))
        }
        #expect(throws: SystemError("spawn /etc/passwd", errno: EACCES)) {
            try ChildProcess.spawn(.path("/etc/passwd"))
        }
        #expect(throws: SystemError("spawn true", errno: ENOENT)) {
            try ChildProcess.spawn(.named("true"), workingDirectory: "/no/such/directory")
        }
        #expect(throws: SystemError("spawn true: give it descriptor 999999", errno: EBADF)) {
            try ChildProcess.spawn(.named("true"), standardError: .descriptor(999_999))
        }
    }

    @Test("texts that the system would cut short are errors")
    func texts() {
        let zero = SystemError("spawn true: give it a text with a zero byte", errno: EINVAL)
        #expect(throws: zero) { try ChildProcess.spawn(.named("true"), arguments: ["a\0b"]) }
        #expect(throws: zero) { try ChildProcess.spawn(.named("true"), environment: .only(["A": "\0"])) }
        #expect(throws: zero) { try ChildProcess.spawn(.named("true"), workingDirectory: "/\0") }
        #expect(throws: SystemError("spawn true: name a variable \"A=B\"", errno: EINVAL)) {
            try ChildProcess.spawn(.named("true"), environment: .only(["A=B": ""]))
        }
    }

    @Test("a child has this process's environment, or the one that it is given")
    func environment() throws {
        setenv("RUNLOOPKIT_TEST", "inherited", 1)
        let heir = try ChildProcess.spawn(.named("env"), standardOutput: .pipe)
        #expect(try text(of: heir.standardOutput).contains("RUNLOOPKIT_TEST=inherited\n"))
        let other = try ChildProcess.spawn(
            .named("env"), environment: .only(["B": "2 3", "A": "="]), standardOutput: .pipe)
        #expect(try text(of: other.standardOutput) == "A==\nB=2 3\n")
        let bare = try ChildProcess.spawn(.named("env"), environment: .only([:]), standardOutput: .pipe)
        #expect(try text(of: bare.standardOutput) == "")
    }

    @Test("a child has a working directory of its own")
    func directory() throws {
        let child = try ChildProcess.spawn(.named("pwd"), workingDirectory: "/usr", standardOutput: .pipe)
        #expect(try text(of: child.standardOutput) == "/usr\n")
    }

    @Test("a child has none of this process's other descriptors")
    func descriptors() throws {
        let leaky = dup(0)
        defer { close(leaky) }
        let child = try ChildProcess.spawn(
            .named("ls"), arguments: ["/proc/self/fd"], standardInput: .null, standardOutput: .pipe)
        // The last one is that of the directory that is read.
        #expect(try text(of: child.standardOutput) == "0\n1\n2\n3\n")
    }

    @Test("a child may be given a descriptor, which stays open here")
    func descriptor() throws {
        var ends: [Int32] = [-1, -1]
        try #require(rlk_pipe(&ends) == 0)
        let child = try shell("echo out; echo error >&2", output: .descriptor(ends[1]), error: .descriptor(ends[1]))
        #expect(try end(of: child) == .exited(0))
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = read(ends[0], &bytes, 100)
        #expect(String(decoding: bytes.prefix(count), as: UTF8.self) == "out\nerror\n")
        #expect(close(ends[0]) == 0 && close(ends[1]) == 0)
    }

    @Test("output and errors may change places")
    func swapped() async {
        await #expect(processExitsWith: .success) {
            onThread {
                var out: [Int32] = [-1, -1]
                var error: [Int32] = [-1, -1]
                precondition(rlk_pipe(&out) == 0 && rlk_pipe(&error) == 0)
                precondition(dup2(out[1], 1) == 1 && dup2(error[1], 2) == 2)
                let child = try! shell("echo out; echo error >&2", output: .descriptor(2), error: .descriptor(1))
                precondition(try! end(of: child) == .exited(0))
                var bytes = [UInt8](repeating: 0, count: 100)
                precondition(read(out[0], &bytes, 100) == 6 && read(error[0], &bytes, 100) == 4)
            }
        }
    }

    @Test("a child begins with its signals unblocked and at their defaults, whatever this process does with them")
    func signals() async {
        await #expect(processExitsWith: .success) {
            onThread {
                var set = sigset_t()
                sigemptyset(&set)
                sigaddset(&set, SIGUSR1)
                pthread_sigmask(SIG_BLOCK, &set, nil)
                try! Signal.ignore(.user2)
                try! Signal.ignore(.pipe)
                let child = try! ChildProcess.spawn(
                    .named("grep"), arguments: ["-E", "SigBlk|SigIgn", "/proc/self/status"], standardOutput: .pipe)
                // Two lines: a name and a mask in hexadecimal digits each.
                let masks = try! text(of: child.standardOutput).split(separator: "\n").map {
                    UInt64($0.split(separator: "\t")[1], radix: 16)!
                }
                // The C library ignores two that it keeps for itself, 32 and 33.
                precondition(masks.map { $0 & ~(3 << 31) } == [0, 0], "\(masks)")
            }
        }
    }

    @Test("a child may have a process group or a session of its own")
    func groups() throws {
        func child(_ group: ChildProcess.Group) throws -> ChildProcess {
            try .spawn(.named("sleep"), arguments: ["1000"], group: group)
        }
        let heir = try child(.inherit)
        #expect(getpgid(heir.processIdentifier) == getpgrp())
        let grouped = try child(.newGroup)
        #expect(getpgid(grouped.processIdentifier) == grouped.processIdentifier)
        #expect(getsid(grouped.processIdentifier) == getsid(0))
        let separate = try child(.newSession)
        #expect(getsid(separate.processIdentifier) == separate.processIdentifier)
        for child in [heir, grouped, separate] {
            try child.kill(.kill)
            #expect(try end(of: child) == .signalled(.kill, coreDumped: false))
        }
    }
}
