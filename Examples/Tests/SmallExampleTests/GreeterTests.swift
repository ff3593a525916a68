import ExampleTestSupport
import Glibc
import Testing

@Suite("Greeter")
struct GreeterTests {
    @Test("tasks of a server that a main program makes run on the main actor, which its loop serves")
    func served() throws {
        var text = ""
        let stream = try #require(popen("timeout 60 \(pathOfProgram("Greeter")) 2>&1", "r"))
        var buffer = [UInt8](repeating: 0, count: 4096)
        while case let count = fread(&buffer, 1, buffer.count, stream), count > 0 {
            text += String(decoding: buffer.prefix(count), as: UTF8.self)
        }
        #expect(pclose(stream) == 0)
        #expect(text == "hello, Ada, you are number 1\nhello, Grace, you are number 2\n")
    }
}
