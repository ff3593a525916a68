import CShims
import Glibc
import Testing

@Test @MainActor func whichThread() { print("MAIN", rlk_is_main_thread()) }
@Test func other() async {
    print("OTHER", rlk_is_main_thread())
    let r = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        await MainActor.run { say("EXIT main \(rlk_is_main_thread())\n") }
        say("EXIT \(rlk_is_main_thread())\n")
        let f = unsafeBitCast(dlsym(nil, "fork"), to: (@convention(c) () -> Int32).self)
        let child = f()
        if child == 0 { say("CHILD \(rlk_is_main_thread())\n"); preconditionFailure("hello") }
        var s: Int32 = 0
        waitpid(child, &s, 0)
        say("STATUS \(s)\n")
        exit(s == 0 ? 0 : 1)
    }
    print(String(decoding: r?.standardErrorContent ?? [], as: UTF8.self))
}
func say(_ s: String) { _ = s.withCString { write(2, $0, strlen($0)) } }
