internal import Glibc

/// The descriptors of a simulated process, with numbers greater than any of the real system's.
struct DescriptorTable {
    static let first: Int32 = 1 << 30

    private var entries: [OpenDescription?] = []
    private let limit: Int

    init(_ descriptions: [OpenDescription], limit: Int) {
        self.limit = limit
        for description in descriptions { _ = add(description) }
    }

    /// Returns the target of a descriptor; `nil`, with `EBADF`, if it is not open.
    subscript(descriptor: Int32) -> OpenDescription? {
        let index = Int(descriptor) - Int(Self.first)
        if entries.indices.contains(index), let description = entries[index] { return description }
        errno = EBADF
        return nil
    }

    /// Returns a table with the same targets under the same numbers.
    func copied() -> DescriptorTable {
        for case let description? in entries { description.hold() }
        return self
    }

    /// All descriptors, open or not.
    var numbers: [Int32] { entries.indices.map { Self.first + Int32($0) } }

    /// Returns the targets of a kind, once for each descriptor.
    func targets<Kind: OpenDescription>(_ kind: Kind.Type) -> [Kind] { entries.compactMap { $0 as? Kind } }

    /// `true` if there is room for one more descriptor; if not, `errno` is `EMFILE`.
    var hasRoom: Bool {
        if entries.count < limit || entries.contains(where: { $0 == nil }) { return true }
        errno = EMFILE
        return false
    }

    /// Adds a descriptor with the lowest free number, as on Unix.
    ///
    /// - Parameter least: the number above `first` below which no number counts as free.
    /// - Returns: -1, with `EMFILE`, if there are too many.
    mutating func add(_ description: OpenDescription, from least: Int = 0) -> Int32 {
        guard hasRoom, least < limit else { return failure(least < limit ? EMFILE : EINVAL) }
        let index = entries.dropFirst(least).firstIndex { $0 == nil } ?? max(entries.count, least)
        set(description, at: index)
        return Self.first + Int32(index)
    }

    /// Gives a free number above `first` a target.
    mutating func set(_ description: OpenDescription, at index: Int) {
        while entries.count <= index { entries.append(nil) }
        entries[index] = description
        description.hold()
    }

    /// `true` if a number above `first` is one that the table may have.
    func mayHave(_ index: Int) -> Bool { 0..<limit ~= index }

    mutating func remove(_ descriptor: Int32) -> OpenDescription? {
        guard let description = self[descriptor] else { return nil }
        entries[Int(descriptor - Self.first)] = nil
        return description
    }

    mutating func removeAll() {
        entries.removeAll()
    }
}
