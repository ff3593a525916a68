import RunLoopHosts
import RunLoopSimulation

/// An hour of a service of Hummingbird and of a client of async-http-client, with cuts of the link and restarts.
enum HummingbirdHour {
    // The length of each of six parts, and the times of its events, in seconds.
    private static let part = 600.0
    private static let cut = 200.0
    private static let crash = 400.0

    static func run(seed: UInt64) {
        withSimulation(seed: seed, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            network.link.latency = .milliseconds(5)
            network.link.jitter = .milliseconds(1)
            let service = network.addProgram("service", at: Programs.path(of: "Service"))
            simulation.advance(by: .seconds(1))
            let client = network.addProgram("client", at: Programs.path(of: "Asker"), arguments: ["3500"])
            for _ in 0..<6 {
                simulation.advance(by: .seconds(cut))
                network.cut(between: client, and: service)
                simulation.advance(by: .seconds(30))
                network.heal()
                simulation.advance(by: .seconds(crash - cut - 30))
                service.crash()
                simulation.advance(by: .seconds(5))
                service.start()
                simulation.advance(by: .seconds(part - crash - 5))
            }
            for line in simulation.trace { print(line) }
            check(Programs.lines(of: "client", simulation))
            if !service.isRunning { Programs.fail("the service has ended") }
            for escape in simulation.escapes { Programs.fail(escape) }
        }
    }

    /// Returns whether a request may fail that began at a second of a part: it was under way at the cut or the crash, or
    /// its connection was.
    private static func mayFail(at second: Double) -> Bool {
        cut - 10..<cut + 50 ~= second || crash - 10..<crash + 30 ~= second
    }

    private static func check(_ lines: [(time: Double, text: Substring)]) {
        var (last, requests) = (0, 0)
        for (time, text) in lines {
            let words = text.split(separator: " ", maxSplits: 2)
            guard words.count == 3, let milliseconds = Double(words[1]) else { continue }
            requests += 1
            // The client begins after a second.
            let second = (time - 1 - milliseconds / 1_000).truncatingRemainder(dividingBy: part)
            let isRight: Bool
            switch (words[0], words[2]) {
            case ("slow", _): isRight = words[2].contains("deadlineExceeded") && abs(milliseconds - 8_000) < 1
            case ("echo", "same"): isRight = milliseconds < 500
            case ("count", _): isRight = milliseconds < 500 && Int(words[2]) != nil
            default: isRight = false
            }
            if let count = Int(words[2]) {
                // A service that starts again counts from one.
                let begins = count <= 4 && crash + 5..<crash + 80 ~= second
                if count <= last, !begins { Programs.fail("\(time): \(text) after \(last)") }
                last = count
            }
            if !isRight, !mayFail(at: second) { Programs.fail("\(time): \(text)") }
        }
        if requests < 200 || lines.last?.text != "asked \(requests)" {
            Programs.fail("\(requests) requests; the last line is \(lines.last?.text ?? "")")
        }
    }
}
