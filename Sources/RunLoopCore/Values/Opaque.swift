/// A type that a `Mirror` shows without children: a user's handle of a live object.
///
/// A mirror copies stored properties, deeply: Swift Testing makes one for each operand of a failed expectation. Here it
/// would read values that other threads are changing, and trap at a generic property whose value is not copyable. Every
/// public class is opaque, and so is each value that leads to an object of another kind.
@_spi(Ports) public protocol Opaque: CustomReflectable {}

@_spi(Ports) extension Opaque {
    public var customMirror: Mirror { Mirror(self, children: [:], ancestorRepresentation: .suppressed) }
}

@_spi(Ports) extension Locked: Opaque {}
