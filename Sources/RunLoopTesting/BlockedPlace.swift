internal import CShims
@_spi(Ports) internal import RunLoopCore
internal import Runtime

/// The place in a program that blocks, or that makes a call that no simulation answers.
enum BlockedPlace {
    /// The names of the functions by the addresses of their call stacks; `nil` for none.
    private static let functions = Locked<[[UInt]: String?]>([:])

    /// Notes the calling thread's task and call stack, which takes 2 µs. The returned closure puts them into words.
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
        // A return address follows its call. This library's own functions and thunks come first, down to the C function
        // that it replaces.
        let function = addresses.lazy.compactMap { rlk_find_function($0 - 1).map { String(cString: $0) } }
            .drop { $0.hasPrefix("$s") }.first(where: isOfProgram)
        let words = function.map { symbol(of: $0).name }
        functions.withLock { $0[addresses] = .some(words) }
        return words
    }

    /// Modules that do not belong to the program: this library, and modules whose functions are inlined into programs.
    private static let otherModules = [
        "RunLoopCore", "RunLoopLibevent", "RunLoopKit", "RunLoopUnix", "RunLoopTLS", "RunLoopSimulation",
        "RunLoopHosts", "RunLoopExploration", "RunLoopTesting", "Foundation", "FoundationEssentials", "Dispatch",
        "Synchronization",
    ].map { "$s\($0.utf8.count)\($0)" }

    /// Returns whether a function belongs to the program. The mangled name of such a function begins with its module;
    /// names in the standard library begin with a letter.
    private static func isOfProgram(_ function: String) -> Bool {
        function.hasPrefix("$s") && function.dropFirst(2).first?.isNumber == true
            && !otherModules.contains(where: function.hasPrefix) && !symbol(of: function).isSwiftThunk
    }

    private static func symbol(of function: String) -> SymbolicatedBacktrace.Symbol {
        SymbolicatedBacktrace.Symbol(
            imageIndex: 0, imageName: "", rawName: function, offset: 0, sourceLocation: nil)
    }
}
