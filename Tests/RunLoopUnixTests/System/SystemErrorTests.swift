import Glibc
import Testing

@testable import RunLoopUnix

@Suite("Errors of the system")
struct SystemErrorTests {
    @Test("an error names the request and the reason for its failure")
    func description() {
        #expect(
            SystemError("bind to port 80", errno: EACCES).description == "bind to port 80: Permission denied (errno 13)"
        )
    }

    @Test("the last error comes from the call before")
    func last() {
        #expect(close(-1) == -1)
        #expect(SystemError.last("close").errno == EBADF)
    }
}
