/// The events for which a descriptor is watched or was found ready. A value and `Sendable`.
public struct DescriptorEvents: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Reading will not block: there are bytes, a connection to accept, the end of the stream, or an error.
    @inlinable
    public static var readable: DescriptorEvents { DescriptorEvents(rawValue: 1) }

    /// Writing will not block, or will fail at once.
    @inlinable
    public static var writable: DescriptorEvents { DescriptorEvents(rawValue: 2) }
}

extension DescriptorEvents: CustomStringConvertible {
    /// The names of the events, for example `readable, writable`; `none` for an empty set.
    public var description: String {
        let names = [contains(.readable) ? "readable" : nil, contains(.writable) ? "writable" : nil]
        return isEmpty ? "none" : names.compactMap(\.self).joined(separator: ", ")
    }
}
