/// Values by the object that is their key: what a loop or a world carries for others.
struct Locals {
    private var values: [ObjectIdentifier: Any] = [:]

    func value<Value>(of key: AnyObject) -> Value? {
        values[ObjectIdentifier(key)].map { $0 as! Value }
    }

    mutating func set(_ value: Any, of key: AnyObject) {
        values[ObjectIdentifier(key)] = value
    }
}
