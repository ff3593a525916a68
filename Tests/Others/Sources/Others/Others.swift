import AsyncAlgorithmsTests
import Glibc
import ServiceLifecycleTests
import SimulatedXCTest

// `Others SEED` runs everything, prints a line for each test and program, and fails if one of them does.

@main
enum Others {
    static func main() {
        let seed = CommandLine.arguments.dropFirst().first.flatMap { UInt64($0) } ?? 0
        var failures = 0
        for test in AsyncAlgorithmsTests.copiedTests() + ServiceLifecycleTests.copiedTests() {
            if !test.runOnHost(seed: seed) { failures += 1 }
        }
        if !Programs.all(seed: seed) { failures += 1 }
        exit(failures == 0 ? 0 : 1)
    }
}
