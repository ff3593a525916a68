/// Carries a value past the compiler to another thread, for tests that such a value fails there or stays where it is.
package struct Smuggled<Value>: @unchecked Sendable {
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }
}
