/// A weak reference that any thread may read.
package final class Weak<Object: AnyObject>: @unchecked Sendable {
    package private(set) weak var object: Object?

    package init(_ object: Object?) {
        self.object = object
    }

    package var isGone: Bool { object == nil }
}
