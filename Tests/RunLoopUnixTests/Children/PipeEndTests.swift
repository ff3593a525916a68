import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@Suite("Pipes to children", .timeLimit(.minutes(15)))
struct PipeEndTests {
    @Test("a megabyte goes through a child and comes back, though no pipe holds that much")
    func throughput() throws {
        let child = try ChildProcess.spawn(.named("cat"), standardInput: .pipe, standardOutput: .pipe)
        let (input, output) = (child.standardInput!, child.standardOutput!)
        let sent = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        var rest = sent[...]
        var received: [UInt8] = []
        let loop = RunLoop.current
        let writing = DescriptorSource(fileDescriptor: input.fileDescriptor, events: .writable) { source, _ in
            rest = rest.dropFirst(try! input.write(rest))
            guard rest.isEmpty else { return }
            source.invalidate()
            input.close()
        }
        let reading = DescriptorSource(fileDescriptor: output.fileDescriptor, events: .readable) { source, _ in
            switch try! output.read(upTo: 10_000) {
            case .bytes(let bytes): received += bytes
            case .nothing: break
            case .end: source.invalidate()
            }
        }
        try loop.add(writing, forMode: .default)
        try loop.add(reading, forMode: .default)
        #expect(loop.run(in: .default, until: loop.now + .seconds(60)) == .finished)
        #expect(received == sent)
        #expect(try end(of: child) == .exited(0))
    }

    @Test("an empty pipe has nothing, a closed one an end, and neither waits")
    func states() throws {
        let child = try shell("read line; exec >&-; read line", input: .pipe)
        #expect(try child.standardOutput!.read() == .nothing)
        #expect(try child.standardInput!.write("go\n".utf8) == 3)
        #expect(try text(of: child.standardOutput) == "")
        #expect(try child.standardOutput!.read() == .end)
        child.standardInput!.close()
        child.standardInput!.close()
        #expect(child.standardInput!.fileDescriptor == -1)
        #expect(throws: SystemError("write to a pipe", errno: EBADF)) { try child.standardInput!.write([1]) }
        #expect(try end(of: child) == .exited(1))
    }

    @Test("a full pipe takes nothing and does not wait")
    func full() throws {
        let child = try ChildProcess.spawn(.named("sleep"), arguments: ["1000"], standardInput: .pipe)
        let block = [UInt8](repeating: 7, count: 100_000)
        while try child.standardInput!.write(block) > 0 {}
        #expect(try child.standardInput!.write(block) == 0)
        try child.kill()
        #expect(try end(of: child) == .signalled(.terminate, coreDumped: false))
    }

    @Test("to write to a child that has gone is an error and no signal")
    func broken() async {
        await #expect(processExitsWith: .success) {
            onThread {
                let child = try! ChildProcess.spawn(.named("true"), standardInput: .pipe)
                precondition(try! end(of: child) == .exited(0))
                do {
                    try child.standardInput!.write([1])
                    preconditionFailure("it is written to nobody")
                } catch {
                    precondition(error as? SystemError == SystemError("write to a pipe", errno: EPIPE))
                }
                // Nothing is pending that would arrive now.
                precondition(disposition(of: .pipe) == 0)
                var none = sigset_t()
                sigemptyset(&none)
                pthread_sigmask(SIG_SETMASK, &none, nil)
            }
        }
    }

    @Test("a SIGPIPE that was blocked and pending before such a write stays so")
    func pendingBefore() async {
        await #expect(processExitsWith: .success) {
            onThread {
                let child = try! ChildProcess.spawn(.named("true"), standardInput: .pipe)
                precondition(try! end(of: child) == .exited(0))
                var (broken, mask, pending) = (sigset_t(), sigset_t(), sigset_t())
                sigemptyset(&broken)
                sigaddset(&broken, SIGPIPE)
                func write() { precondition((try? child.standardInput!.write([1])) == nil) }
                pthread_sigmask(SIG_BLOCK, &broken, nil)
                write()
                sigpending(&pending)
                precondition(sigismember(&pending, SIGPIPE) == 0, "what the write has raised is taken back")
                pthread_kill(pthread_self(), SIGPIPE)
                write()
                sigpending(&pending)
                precondition(sigismember(&pending, SIGPIPE) == 1)
                pthread_sigmask(SIG_BLOCK, nil, &mask)
                precondition(sigismember(&mask, SIGPIPE) == 1)
                _exit(0)
            }
        }
    }

    @Test("a child's standard descriptors that are no pipes have no ends here")
    func none() throws {
        let child = try shell("cat", input: .null, output: .null)
        #expect(child.standardInput == nil && child.standardOutput == nil && child.standardError == nil)
        #expect(try end(of: child) == .exited(0))
    }
}
