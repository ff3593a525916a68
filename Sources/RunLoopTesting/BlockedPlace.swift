internal import RunLoopCore
internal import Runtime

/// The place in a program where a thread waits for a semaphore or a condition.
enum BlockedPlace {
    /// The program and its shared libraries. Finding them takes 3 ms, and a backtrace with them 2 µs.
    private static let images = ImageMap.capture()

    /// Notes where the calling thread is.
    ///
    /// - Returns: the function, with its file and line if the program has debug information, and the name of the task.
    static func capture() -> @Sendable () -> String? {
        let (name, backtrace) = (Task.name, try? Backtrace.capture(limit: 32, images: images))
        return {
            let function = backtrace?.symbolicated(with: images).flatMap { backtrace in
                // This library's own functions and thunks come first, down to the function of C that it replaces.
                backtrace.frames.lazy.filter { !$0.isSwiftThunk }.compactMap(\.symbol)
                    .drop { $0.rawName.hasPrefix("$s") }.first(where: isOfProgram)
            }
            let words = [name.map { "the task \(quoted($0))" }, function.map(describe)].compactMap(\.self)
            return words.isEmpty ? nil : words.joined(separator: ", in ")
        }
    }

    /// Whether a function belongs to the program, and neither to this library nor to one of the system.
    private static func isOfProgram(_ symbol: SymbolicatedBacktrace.Symbol) -> Bool {
        let own = ["$s12RunLoopCore", "$s17RunLoopSimulation", "$s14RunLoopTesting"]
        return symbol.rawName.hasPrefix("$s") && !own.contains { symbol.rawName.hasPrefix($0) }
            && !symbol.imageName.hasPrefix("lib")
    }

    private static func describe(_ symbol: SymbolicatedBacktrace.Symbol) -> String {
        guard let place = symbol.sourceLocation else { return symbol.name }
        let file = place.path.split(separator: "/").last ?? ""
        return "\(symbol.name) (\(file):\(place.line))"
    }
}
