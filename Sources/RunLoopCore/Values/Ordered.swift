extension Sequence {
    /// Returns the elements sorted by `precedes`; equal elements keep their order. For reports and short sequences.
    ///
    /// The compiler makes a copy of `sorted(by:)` for each closure, and the copies were a tenth of the module's code.
    /// This method sorts the elements' indices, so that a single copy is enough.
    func ordered(by precedes: (Element, Element) -> Bool) -> [Element] {
        let elements = Array(self)
        let places = placesInOrder(elements.count) { left, right in
            if precedes(elements[left], elements[right]) { return true }
            return left < right && !precedes(elements[right], elements[left])
        }
        return places.map { elements[$0] }
    }
}

@inline(never)
private func placesInOrder(_ count: Int, by precedes: (Int, Int) -> Bool) -> [Int] {
    Array(0..<count).sorted(by: precedes)
}
