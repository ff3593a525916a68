import RunLoopKit
import Testing

@Suite("Leaks, as LeakSanitizer sees them")
struct LeakTests {
    @Test("memory that a loop holds when its process exits is not leaked, regardless of the amount")
    func exit() async {
        // Without the sanitizer the test cannot fail; the short run under AddressSanitizer includes it.
        await #expect(processExitsWith: .success) {
            func fill() {
                let loop = RunLoop.current
                for number in 0..<10_000 {
                    let mode = RunLoop.Mode("mode \(number % 2_000)")
                    loop.perform(afterDelay: .seconds(3_600), inModes: RunLoop.Modes(mode)) {}
                    loop.add(Timer(timeInterval: .seconds(3_600), repeats: true) { _ in }, forMode: .default)
                }
            }
            fill()
        }
    }
}
