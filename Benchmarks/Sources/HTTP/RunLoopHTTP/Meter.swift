import Glibc

/// Measures a client: how long its requests take, and the processor time of the whole program.
struct Meter: Sendable {
    /// Where the requests go.
    let address: String
    /// The number of bytes in each request's body.
    let sent: Int
    /// The number of bytes in each answer's body.
    let expected: Int
    /// The number of requests at a time.
    let connections: Int
    private let start = ContinuousClock.now
    private let seconds: Int

    /// Reads the command line.
    init() {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let connections = Int(arguments[3]), let seconds = Int(arguments[4]) else {
            fatalError("usage: \(arguments[0]) PORT get|post|stream CONNECTIONS SECONDS")
        }
        address = "http://127.0.0.1:\(arguments[1])/\(arguments[2] == "get" ? "" : arguments[2])"
        sent = arguments[2] == "post" ? 16_384 : 0
        expected = ["get": 13, "post": 16_384, "stream": 1 << 20][arguments[2]]!
        (self.connections, self.seconds) = (connections, seconds)
    }

    /// Sends requests one after another until the time is up.
    ///
    /// - Parameter send: sends a request, reads the answer, and returns the number of bytes in its body.
    /// - Returns: the microseconds that each request took.
    nonisolated(nonsending) func times(of send: nonisolated(nonsending) () async throws -> Int) async throws -> [Int] {
        var times: [Int] = []
        var now = ContinuousClock.now
        while now < start + .seconds(seconds) {
            let count = try await send()
            guard count == expected else { fatalError("an answer has \(count) bytes") }
            let end = ContinuousClock.now
            times.append(Int((end - now) / .microseconds(1)))
            now = end
        }
        return times
    }

    /// Prints the microseconds of processor time for a request, of the median and of the 99th percentile.
    func report(_ times: [Int]) {
        var spent = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent)
        let (count, sorted) = (times.count, times.sorted())
        let microseconds = Double(spent.tv_sec) * 1e6 + Double(spent.tv_nsec) / 1e3
        print(microseconds / Double(count), sorted[count / 2], sorted[count * 99 / 100])
    }
}
