/// The purpose of a call, for reports: one byte in its slot.
@_spi(Ports) public struct CallLabel: Sendable, BitwiseCopyable, Equatable {
    let id: UInt8

    private static let names = Locked<[String]>([])

    /// The label of a call without a special purpose.
    public static let call = CallLabel(id: 0)
    /// The label of a call of a method, which can be found by its target.
    static let targetedCall = CallLabel(id: 1)
    /// The label of a task's sleep, whose block is also called when its loop ends.
    static let sleep = CallLabel(id: 2)

    init(id: UInt8) {
        self.id = id
    }

    /// Creates a label with a name that the process keeps. For constants: there can be 253.
    public init(_ name: String) {
        id = Self.names.withLock { names in
            if let index = names.firstIndex(of: name) { return UInt8(index + 3) }
            require(
                names.count < 253,
                "labels of calls are constants; use a timer with a name if each call needs its own label")
            names.append(name)
            return UInt8(names.count + 2)
        }
    }

    var kind: RunLoop.ItemKind { self == .sleep ? .sleep : .delayedCall }
    var name: String? { id < 3 ? nil : Self.names.withLock { $0[Int(id) - 3] } }
}
