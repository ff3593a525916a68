extension RunLoop {
    /// The modes in which something is scheduled: one or several, the common modes, or every mode.
    ///
    /// ```swift
    /// loop.add(timer, forMode: .common)
    /// loop.perform(inModes: [.default, "panel"]) { … }
    /// ```
    ///
    /// For a ``Mode-swift.struct`` in a variable, write `Modes(mode)`. A value and `Sendable`.
    public struct Modes: Sendable, Hashable, ExpressibleByArrayLiteral, ExpressibleByStringLiteral {
        var explicit = ModeSet()
        var groups = Groups()

        /// Modes that are included without being named. One byte, not two flags: a post copies it at every step.
        struct Groups: OptionSet, Sendable, Hashable {
            let rawValue: UInt8

            init(rawValue: UInt8) {
                self.rawValue = rawValue
            }

            static let common = Groups(rawValue: 1)
            static let every = Groups(rawValue: 2)
            static let nobodys = Groups(rawValue: 128)
        }

        static let commonName = "common"

        private init(_ groups: Groups) {
            self.groups = groups
        }

        /// Creates a set of one mode.
        public init(_ mode: Mode) {
            explicit = ModeSet(mode)
        }

        /// Creates a set of the mode with the given name, or the common modes if the name is `common`.
        public init(stringLiteral name: String) {
            self = name == Modes.commonName ? .common : Modes(Mode(name))
        }

        /// Creates the union of the given modes. An empty list schedules nothing.
        public init(arrayLiteral elements: Modes...) {
            self.init(elements)
        }

        /// Creates the union of the given modes.
        public init(_ elements: some Sequence<Modes>) {
            for element in elements {
                explicit.formUnion(element.explicit)
                groups.formUnion(element.groups)
            }
        }

        /// Creates a set of the given modes.
        public init(_ elements: some Sequence<Mode>) {
            for element in elements { explicit.insert(element) }
        }

        /// The mode ``RunLoop/Mode-swift.struct/default``.
        public static let `default` = Modes(Mode.default)

        /// The mode ``RunLoop/Mode-swift.struct/tracking``.
        public static let tracking = Modes(Mode.tracking)

        /// Every mode that the loop counts as common, including modes that become common later.
        public static let common = Modes(.common)

        /// Any mode that the loop runs in, as for a ``TimerSource``.
        public static let every = Modes(.every)

        /// A value that equals no modes of an item.
        static let nobodys = Modes(.nobodys)

        /// Indicates whether no mode is among them.
        @_spi(Ports) public var isEmpty: Bool { explicit.isEmpty && groups.isEmpty }
    }
}

extension RunLoop.Modes: CustomStringConvertible {
    /// The names of the modes, for example `[default, panel]`, `common` or `[default, common]`.
    public var description: String {
        var names = explicit.all.map(\.name)
        if groups.contains(.common) { names.append(Self.commonName) }
        if groups.contains(.every) { names.append("every mode") }
        return names.count == 1 ? names[0] : "[" + names.joined(separator: ", ") + "]"
    }
}
