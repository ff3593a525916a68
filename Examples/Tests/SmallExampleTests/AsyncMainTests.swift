import ExampleTestSupport
import Glibc
import Testing

@Suite("AsyncMain")
struct AsyncMainTests {
    /// Runs the example, and returns its lines on standard output and standard error.
    private func output(of arguments: String, endsWell: Bool = true) throws -> [String] {
        var text = ""
        let stream = try #require(popen("timeout 60 \(pathOfProgram("AsyncMain")) \(arguments) 2>&1", "r"))
        var buffer = [UInt8](repeating: 0, count: 4096)
        while case let count = fread(&buffer, 1, buffer.count, stream), count > 0 {
            text += String(decoding: buffer.prefix(count), as: UTF8.self)
        }
        #expect((pclose(stream) == 0) == endsWell)
        return text.split(separator: "\n").map(String.init)
    }

    @Test("AsyncMain runs on the main thread's loop, beside timers and tasks")
    func served() throws {
        #expect(try output(of: "") == ["tick 0", "tick 1", "tick 2", "sum 500500"])
    }

    @Test("a main loop that leaves its jobs waiting reports it once")
    func unserved() throws {
        let lines = try output(of: "unserved")
        #expect(lines.count == 1)
        #expect(lines.first?.contains("call RunLoop.main.serveMainActor()") == true, "\(lines)")
    }

    @Test("a job of the main actor that runs the loop until a task of the main actor has ended traps")
    func nested() throws {
        let text = try output(of: "nested", endsWell: false).joined()
        #expect(
            text.contains("nothing can happen any more that would end the wait, because the task comes after the job"))
    }
}
