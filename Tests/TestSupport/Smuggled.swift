/// Carries what must not leave its thread past the compiler: for tests of what happens then, or that it does not leave.
package struct Smuggled<Value>: @unchecked Sendable {
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }
}
