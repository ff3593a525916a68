import RunLoopExploration

/// The register of one key, as clients should see it.
struct RegisterModel: SequentialModel {
    enum Operation {
        case get(String)
        case set(String, to: String)
    }

    private var value: String?

    /// - Returns: the value afterwards.
    mutating func perform(_ operation: Operation) -> String? {
        if case .set(_, let value) = operation { self.value = value }
        return value
    }

    static func part(of operation: Operation) -> String? {
        switch operation {
        case .get(let key), .set(let key, to: _): key
        }
    }
}
