/// A reference that is not counted, for holders that know that the object is kept elsewhere.
///
/// A counted reference costs two locked instructions at each use. Adding and cancelling a timer made 32 runtime calls
/// for references; the loop, its items and its queue refer to each other by unowned references instead.
@_spi(Ports) public struct UnownedReference<Object: AnyObject>: BitwiseCopyable, Equatable {
    @usableFromInline let reference: Unmanaged<Object>

    /// Creates a reference to an object that is kept elsewhere.
    @inlinable @inline(__always)
    public init(_ object: Object) {
        reference = .passUnretained(object)
    }

    /// - Parameter address: the address of an object of type `Object`.
    init(address: UnsafeRawPointer) {
        reference = .fromOpaque(address)
    }

    /// Calls `body` with the object, which is not retained meanwhile: `body` must not release its owner.
    // Underscored, but the only way not to count: the result of `takeUnretainedValue` is retained around every use.
    @inlinable @inline(__always)
    public func with<Result>(_ body: (Object) -> Result) -> Result {
        reference._withUnsafeGuaranteedRef(body)
    }

    /// The object, as a counted reference.
    public var object: Object { reference.takeUnretainedValue() }

    var address: UnsafeRawPointer { UnsafeRawPointer(reference.toOpaque()) }

    package func retain() { _ = reference.retain() }
    func release() { reference.release() }

    /// Returns whether both refer to the same object.
    @inline(__always)
    public static func == (left: UnownedReference, right: UnownedReference) -> Bool { left.address == right.address }
}
