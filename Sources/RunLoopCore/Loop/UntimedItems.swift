/// The scheduled items without a deadline.
struct UntimedItems {
    private var items: [ObjectIdentifier: RunLoop.UntimedItem] = [:]
    private var lastNumber = 0
    /// The number of items that observe runs; if it is 0, a pass need not look at each activity.
    private(set) var observerCount = 0

    /// Keeps an item that joins its first mode.
    mutating func keep(_ item: RunLoop.UntimedItem) {
        lastNumber += 1
        item.number = lastNumber
        assert(items[ObjectIdentifier(item)] == nil, "an item joins its first mode twice")
        items[ObjectIdentifier(item)] = item
        if !item.observedActivities.isEmpty { observerCount += 1 }
    }

    /// Releases an item that has left its last mode.
    mutating func letGo(_ item: RunLoop.UntimedItem) {
        assert(items[ObjectIdentifier(item)] === item, "an item leaves a loop that does not keep it")
        assert(item.observedActivities.isEmpty || observerCount > 0, "the loop has lost count of its observers")
        items[ObjectIdentifier(item)] = nil
        if !item.observedActivities.isEmpty { observerCount -= 1 }
    }

    /// The items, in the order in which they were added.
    var all: [RunLoop.UntimedItem] { items.values.ordered { $0.number < $1.number } }
}
