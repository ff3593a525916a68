import CShims
import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// The start of a child.
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

    @Test("a missing program, directory or descriptor is an error, and no child starts")
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
        #expect(throws: SystemError("spawn true: go to /no/such/directory", errno: ENOENT)) {
            try ChildProcess.spawn(.named("true"), workingDirectory: "/no/such/directory")
        }
        #expect(throws: SystemError("spawn true: give it descriptor 999999", errno: EBADF)) {
            try ChildProcess.spawn(.named("true"), standardError: .descriptor(999_999))
        }
    }

    @Test("a child's standard error may go where its standard output goes, in one order")
    func errorIntoOutput() throws {
        let line = "echo one; echo two >&2; echo three; echo four >&2"
        let child = try shell(line, error: .standardOutput)
        #expect(try text(of: child.standardOutput) == "one\ntwo\nthree\nfour\n")
        #expect(child.standardError == nil)
        #expect(try end(of: child).isSuccess)
        let file = TemporaryFile("")
        let descriptor = open(file.path, O_WRONLY)
        let other = try shell(line, output: .descriptor(descriptor), error: .standardOutput)
        #expect(try end(of: other).isSuccess)
        close(descriptor)
        #expect(contents(of: file.path) == "one\ntwo\nthree\nfour\n")
        #expect(try end(of: shell(line, output: .null, error: .standardOutput)).isSuccess)
    }

    @Test("only a standard error goes where the standard output goes")
    func outputIntoItself() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = try shell("", output: .standardOutput)
        }
        #expect(says("only a child's standard error goes to its standard output", result))
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

    @Test("a child has this process's environment, or a given one")
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

    @Test("an environment is inherited with changes, including values that are not text")
    func updatedEnvironment() throws {
        setenv("RUNLOOPKIT_KEPT", "\u{FF}", 1)
        let notText: [CChar] = [-1, 97, 0]
        setenv("RUNLOOPKIT_BYTES", notText, 1)
        setenv("RUNLOOPKIT_REMOVED", "1", 1)
        setenv("RUNLOOPKIT_CHANGED", "1", 1)
        let changes = ["RUNLOOPKIT_REMOVED": nil, "RUNLOOPKIT_CHANGED": "2", "RUNLOOPKIT_ADDED": "3"]
        let child = try ChildProcess.spawn(
            .path("/bin/sh"), arguments: ["-c", "env | grep -a ^RUNLOOPKIT_[ABCKR] | sort | od -An -tx1 -v"],
            environment: .updating(changes), standardOutput: .pipe)
        let bytes = try text(of: child.standardOutput).split { $0 == " " || $0 == "\n" }.map { UInt8($0, radix: 16)! }
        let lines = bytes.split(separator: 10)
        #expect(lines.contains(Array("RUNLOOPKIT_ADDED=3".utf8)[...]))
        #expect(lines.contains(Array("RUNLOOPKIT_CHANGED=2".utf8)[...]))
        #expect(lines.contains(Array("RUNLOOPKIT_KEPT=\u{FF}".utf8)[...]))
        #expect(lines.contains(Array("RUNLOOPKIT_BYTES=".utf8)[...] + [255, 97]))
        #expect(lines.count == 4, "none is there twice, and the removed one is not there")
        #expect(throws: SystemError("spawn true: name a variable \"A=B\"", errno: EINVAL)) {
            try ChildProcess.spawn(.named("true"), environment: .updating(["A=B": nil]))
        }
    }

    @Test("a child runs as another user in the groups given, if this process may choose, and this one stays as it was")
    func user() throws {
        let nobody = ChildProcess.User(65_534, group: 65_533, supplementaryGroups: [65_531, 65_532])
        let before = isDumpable
        guard geteuid() == 0 else {
            #expect(throws: SystemError("spawn id: run it as user 65534, group 65533", errno: EPERM)) {
                try ChildProcess.spawn(.named("id"), user: nobody)
            }
            return
        }
        let child = try ChildProcess.spawn(
            .path("/bin/sh"), arguments: ["-c", "grep -E '^(Uid|Gid|Groups)' /proc/self/status"], standardOutput: .pipe,
            user: nobody)
        let lines = try text(of: child.standardOutput).split(separator: "\n").map {
            $0.split(whereSeparator: \.isWhitespace)
        }
        #expect(
            lines.map { $0.dropFirst().map(String.init) } == [
                ["65534", "65534", "65534", "65534"], ["65533", "65533", "65533", "65533"], ["65531", "65532"],
            ])
        #expect(isDumpable == before, "this process may still be traced and dump core")
        // The child's rights decide.
        let directory = TemporaryDirectory()
        #expect(throws: SystemError("spawn true: go to \(directory.path)", errno: EACCES)) {
            try ChildProcess.spawn(.named("true"), workingDirectory: directory.path, user: nobody)
        }
    }

    /// The kernel's answer about this process; Swift's Glibc module hides the function. 3 is PR_GET_DUMPABLE.
    private var isDumpable: Int32 {
        unsafeBitCast(dlsym(nil, "prctl"), to: (@convention(c) (Int32) -> Int32).self)(3)
    }

    @Test("a user is found by name, with all groups")
    func namedUser() throws {
        let root = try ChildProcess.User(named: "root")
        #expect(root.identifier == 0 && root.group == 0 && root.supplementaryGroups.contains(0))
        #expect(throws: SystemError("find the user no-such-user", errno: ENOENT)) {
            try ChildProcess.User(named: "no-such-user")
        }
        #expect(throws: SystemError.self) { try ChildProcess.User(named: "root\0") }
    }

    @Test("a child has limits of its own, which it cannot raise; a limit that cannot be set is an error")
    func limits() throws {
        let child = try ChildProcess.spawn(
            .path("/bin/sh"), arguments: ["-c", "ulimit -n; ulimit -Hn; ulimit -Sc; ulimit -Ht"], standardOutput: .pipe,
            resourceLimits: [.openFiles: 17, .coreSize: 0, .processorTime: 100])
        #expect(try text(of: child.standardOutput) == "17\n17\n0\n100\n")
        // More than the system allows any process.
        #expect(throws: SystemError("spawn true: set its resource limits", errno: EPERM)) {
            try ChildProcess.spawn(.named("true"), resourceLimits: [.openFiles: .max])
        }
        let limits = try ChildProcess.spawn(
            .named("grep"), arguments: ["^Max", "/proc/self/limits"], standardOutput: .pipe,
            resourceLimits: [
                .processorTime: 1_001, .fileSize: 1_002, .dataSize: 1 << 31, .stackSize: 1 << 20, .coreSize: 0,
                .processes: 1_003, .openFiles: 18, .lockedMemory: 4_096, .addressSpace: 1 << 33,
            ])
        let lines = try text(of: limits.standardOutput).split(separator: "\n").map { $0.split(separator: " ") }
        let found = Set(lines.flatMap { line in line.dropFirst().compactMap { UInt64($0) } })
        #expect(found.isSuperset(of: [1_001, 1_002, 1 << 31, 1 << 20, 0, 1_003, 18, 4_096, 1 << 33]))
    }

    @Test("a program that cannot be run is distinguished from a missing one, anywhere in PATH")
    func search() async {
        await #expect(processExitsWith: .success) {
            onThread {
                let (one, other) = (TemporaryDirectory(), TemporaryDirectory())
                one.write("#!/bin/sh\n", to: "tool")
                setenv("PATH", "\(one.path):/no/such/directory:\(other.path):/usr/bin:/bin", 1)
                func outcome(_ name: String) -> Int32 {
                    do {
                        return try end(of: .spawn(.named(name))).isSuccess ? 0 : -1
                    } catch let error as SystemError {
                        return error.errno
                    } catch { return -2 }
                }
                precondition(outcome("tool") == EACCES)
                other.write("#!/bin/sh\nexit 0\n", to: "tool")
                chmod(other["tool"], 0o755)
                precondition(outcome("tool") == 0, "the next one in PATH is taken")
                precondition(outcome("no-such-tool") == ENOENT && outcome("") == ENOENT)
                // A text without a first line that names its interpreter is no program.
                other.write("exit 0\n", to: "text")
                chmod(other["text"], 0o755)
                precondition(outcome("text") == ENOEXEC)
                unsetenv("PATH")
                precondition(outcome("true") == 0)
            }
        }
    }

    @Test("many threads start children at the same time")
    func manyThreads() {
        let good = Counter()
        let threads = (0..<4).map { _ in
            PlainThread {
                for _ in 0..<10 {
                    if let child = try? ChildProcess.spawn(.named("true")), (try? end(of: child)) == .exited(0) {
                        good.add()
                    }
                    if (try? ChildProcess.spawn(.named("no-such-program"))) == nil { good.add() }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(good.value == 80)
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
        // The last one is the descriptor of the directory being read.
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

    @Test("a child begins with its signals unblocked and at their defaults, regardless of this process's settings")
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
                // The C library ignores two signals that it keeps for itself, 32 and 33.
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
