import ArgumentParser
import Scenarios

enum OutputFormat: String, ExpressibleByArgument, CaseIterable {
    case text, json
}

enum ClockName: String, ExpressibleByArgument, CaseIterable {
    case virtual, real
}

struct ClockOptions: ParsableArguments {
    @Option(help: "The clock to play on; virtual time is exact and takes no time.")
    var clock = ClockName.virtual

    @Option(help: "On the real clock, what every time is multiplied by.")
    var scale = 1.0

    var testbedClock: Testbed.Clock {
        clock == .virtual ? .virtual : .real(scale: scale)
    }

    func validate() throws {
        guard scale > 0, scale.isFinite else { throw ValidationError("--scale takes a number above zero, as 0.1") }
    }
}
