extension RunLoop {
    /// A value that each loop has for itself, made at the first access and released when the loop ends: the counterpart
    /// of a thread-local variable. For libraries built on loops, whose users share a loop.
    ///
    /// ```swift
    /// private let buffers = RunLoop.Local { _ in BufferPool() }
    /// let pool = loop[buffers]
    /// ```
    ///
    /// Keep the key in a constant as long as the process runs. The key is `Sendable`; a value belongs to its loop's
    /// thread. O(1).
    public final class Local<Value>: Sendable {
        fileprivate let make: @Sendable (RunLoop) -> Value

        /// Creates the key of a value that each loop has.
        ///
        /// - Parameter make: makes the value at the first access, on the loop's thread.
        public init(_ make: @escaping @Sendable (RunLoop) -> Value) {
            self.make = make
        }
    }

    /// The loop's own value. On the loop's thread.
    public subscript<Value>(local: Local<Value>) -> Value {
        get {
            checkThread()
            if let value: Value = locals.value(of: local) { return value }
            let value = local.make(self)
            self[local] = value
            return value
        }
        set {
            checkThread()
            let former = locals.set(newValue, of: local)
            withExtendedLifetime(former) {}
        }
    }
}
