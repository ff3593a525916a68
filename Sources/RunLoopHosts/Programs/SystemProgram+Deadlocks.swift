internal import CPrograms
internal import CShims
internal import Glibc

/// Threads of a program that wait for each other's locks.
extension SystemProgram {
    /// Reports a circle of threads, each of which waits without a limit for a lock of the next, if a thread has just
    /// closed one.
    func findDeadlock(from slot: Int32) {
        var circle = [slot]
        while case let holder = rlk_find_slot_of_holder(page, circle.last!), holder >= 0 {
            if holder == slot {
                process.failureHandler?(
                    Deadlock(waits: circle.map { words(for: $0, awaiting: rlk_find_slot_of_holder(page, $0)) }))
                return
            }
            guard !circle.contains(holder) else { return }
            circle.append(holder)
        }
    }

    private func words(for slot: Int32, awaiting holder: Int32) -> String {
        let functions = functions(of: slot)
        let place = functions.isEmpty ? "" : " in \(functions.joined(separator: ", called by "))"
        return "\(name(of: slot)) waits for a lock of \(name(of: holder))\(place)"
    }

    private func name(of slot: Int32) -> String {
        let own = String(cString: rlk_name_of(page, slot))
        let number = numbers[slot].map { "thread \($0)" } ?? "the main thread"
        return own.isEmpty ? number : "\(number) \"\(own)\""
    }

    /// Returns the names of the program's functions, the innermost first, in which a thread waits for a lock.
    private func functions(of slot: Int32) -> [String] {
        let (most, mostFrames) = (3, 16)
        let addresses = [UInt](unsafeUninitializedCapacity: mostFrames) { room, count in
            count = Int(rlk_find_callers(page, slot, room.baseAddress, Int32(mostFrames)))
        }
        // Each is the address of the next instruction.
        let names = addresses.lazy.compactMap { [path] address -> String? in
            guard let name = rlk_describe_function_in(path, address - 1) else { return nil }
            defer { free(name) }
            return String(cString: name)
        }
        return Array(names.prefix(most))
    }
}

/// Locks that are never given back.
private struct Deadlock: Error, CustomStringConvertible {
    let waits: [String]

    var description: String { "deadlock: \(waits.joined(separator: "; "))" }
}
