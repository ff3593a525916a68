internal import CShims
internal import RunLoopCore
internal import Runtime

/// The place in a program that asks a simulation for a wait, or for something that no simulation answers.
enum BlockedPlace {
    /// The functions, by the addresses of the calls that led there; `nil` for none.
    private static let functions = Locked<[[UInt]: String?]>([:])

    /// Notes the calling thread's task and the addresses of its calls, which takes 2 µs. They are put into words when
    /// somebody asks.
    static func capture() -> @Sendable () -> String? {
        let name = Task.name
        let addresses = [UInt](unsafeUninitializedCapacity: 32) { room, count in
            count = Int(rlk_return_addresses(room.baseAddress, Int32(room.count)))
        }
        return {
            let words = [name.map { "the task \(quoted($0))" }, function(calling: addresses)].compactMap(\.self)
            return words.isEmpty ? nil : words.joined(separator: ", in ")
        }
    }

    private static func function(calling addresses: [UInt]) -> String? {
        if let known = functions.withLock({ $0[addresses] }) { return known }
        // An address is that behind the call. This library's own functions and thunks come first, down to the function of
        // C that it replaces.
        let function = addresses.lazy.compactMap { rlk_find_function($0 - 1).map { String(cString: $0) } }
            .drop { $0.hasPrefix("$s") }.first(where: isOfProgram)
        let words = function.map { symbol(of: $0).name }
        functions.withLock { $0[addresses] = .some(words) }
        return words
    }

    /// Modules that are not the program's: this library, and those of which functions are copied into programs.
    private static let otherModules = [
        "RunLoopCore", "RunLoopLibevent", "RunLoopKit", "RunLoopUnix", "RunLoopTLS", "RunLoopSimulation",
        "RunLoopHosts", "RunLoopExploration", "RunLoopTesting", "Foundation", "FoundationEssentials", "Dispatch",
        "Synchronization",
    ].map { "$s\($0.utf8.count)\($0)" }

    /// Whether a function belongs to the program. Its name then begins with a module, and that of one of the standard
    /// library with a letter.
    private static func isOfProgram(_ function: String) -> Bool {
        function.hasPrefix("$s") && function.dropFirst(2).first?.isNumber == true
            && !otherModules.contains(where: function.hasPrefix) && !symbol(of: function).isSwiftThunk
    }

    private static func symbol(of function: String) -> SymbolicatedBacktrace.Symbol {
        SymbolicatedBacktrace.Symbol(
            imageIndex: 0, imageName: "", rawName: function, offset: 0, sourceLocation: nil)
    }
}
