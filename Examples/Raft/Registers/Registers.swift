/// The values of keys, the state on which the members agree because each applies the same commands in the same order.
struct Registers {
    private var values: [String: String] = [:]

    subscript(key: String) -> String? { values[key] }

    mutating func apply(_ command: Command) {
        switch command {
        case .nothing: break
        case .set(let key, let value): values[key] = value
        }
    }
}
