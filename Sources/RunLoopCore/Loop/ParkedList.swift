/// Sources whose descriptor is not watched for now, because it was found ready and they could not be called.
struct ParkedList {
    private(set) var all: [RunLoop.Source] = []
    /// The mode for which those that could be watched again already are.
    private var mode: RunLoop.Mode?

    var isEmpty: Bool { all.isEmpty }

    mutating func insert(_ source: RunLoop.Source) {
        source.parkedIndex = all.count
        all.append(source)
    }

    /// O(1): the last one takes its place.
    mutating func remove(_ source: RunLoop.Source) {
        guard let index = source.parkedIndex else { return }
        source.parkedIndex = nil
        let last = all.removeLast()
        guard last !== source else { return }
        all[index] = last
        last.parkedIndex = index
    }

    /// Something other than the mode has changed, so that one of them may be watched again.
    mutating func lookAgain() {
        mode = nil
    }

    /// - Returns: whether they are to be looked at.
    mutating func begin(_ mode: RunLoop.Mode) -> Bool {
        defer { self.mode = mode }
        return self.mode != mode
    }
}
