extension Sequence {
    /// The elements in an order; equal ones stay as they were. For reports, and where there are few.
    ///
    /// The compiler makes a copy of `sorted(by:)` for each closure, and the copies were a tenth of the module's code. This
    /// one sorts the elements' places, so that a single copy does.
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
