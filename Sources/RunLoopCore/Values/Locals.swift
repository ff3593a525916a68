/// Values that a loop or a world carries for other objects, which are their keys.
struct Locals {
    private var values: [ObjectIdentifier: Any] = [:]

    func value<Value>(of key: AnyObject) -> Value? {
        values[ObjectIdentifier(key)].map { $0 as! Value }
    }

    /// - Returns: the former value, to be released outside of any change: its deinit may access any value.
    mutating func set(_ value: Any, of key: AnyObject) -> Any? {
        values.updateValue(value, forKey: ObjectIdentifier(key))
    }

    var isEmpty: Bool { values.isEmpty }
}
