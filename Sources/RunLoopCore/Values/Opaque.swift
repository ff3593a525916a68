/// A type that a `Mirror` shows without children: what a user holds of something that lives.
///
/// A mirror copies stored properties, deeply: Swift Testing makes one of each operand of an expectation that fails. Here
/// it would read what other threads are changing, and trap at a generic property whose value is not copyable. Every public
/// class is opaque, and so is each value that leads to an object of another kind. Its public properties say what there is
/// to be known.
package protocol Opaque: CustomReflectable {}

extension Opaque {
    public var customMirror: Mirror { Mirror(self, children: [:], ancestorRepresentation: .suppressed) }
}

extension Locked: Opaque {}
