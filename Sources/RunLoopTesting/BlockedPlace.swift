internal import CShims
internal import RunLoopCore
internal import Runtime

/// The place in a program where a thread waits for a semaphore or a condition.
enum BlockedPlace {
    /// The program and its shared libraries. Finding them takes 3 ms.
    private static let images = ImageMap.capture()

    /// The functions, by the addresses of the calls that led there; `nil` for none. A backtrace of a task reads and
    /// sorts all symbols of the program, 40 ms in a large one, and an exploration's runs block in the same places.
    private static let functions = Locked<[[UInt]: String?]>([:])

    /// Notes the calling thread's task and function, with its file and line if the program has debug information.
    static func capture() -> @Sendable () -> String? {
        let name = Task.name
        let addresses = [UInt](unsafeUninitializedCapacity: 32) { room, count in
            count = Int(rlk_return_addresses(room.baseAddress, Int32(room.count)))
        }
        let function = functions.withLock { $0[addresses] } ?? findFunction(calling: addresses)
        return {
            let words = [name.map { "the task \(quoted($0))" }, function].compactMap(\.self)
            return words.isEmpty ? nil : words.joined(separator: ", in ")
        }
    }

    @inline(never)
    private static func findFunction(calling addresses: [UInt]) -> String? {
        let backtrace = try? Backtrace.capture(limit: 32, images: images)
        let function = backtrace?.symbolicated(with: images).flatMap { backtrace in
            // This library's own functions and thunks come first, down to the function of C that it replaces.
            backtrace.frames.lazy.filter { !$0.isSwiftThunk }.compactMap(\.symbol)
                .drop { $0.rawName.hasPrefix("$s") }.first(where: isOfProgram)
        }
        let words = function.map(describe)
        functions.withLock { $0[addresses] = .some(words) }
        return words
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
