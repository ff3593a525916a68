extension RunLoop {
    /// The place in a program where a timer or source was made: what reports call things by that have no name.
    ///
    /// Everything that can be scheduled takes it from `#fileID` and `#line` where it is made; who makes such things for
    /// others passes on their place. It costs no allocation.
    public struct Origin: Sendable, Hashable, CustomStringConvertible {
        // A pointer, not the `StaticString` that it comes from: 12 bytes in each of a million timers, and not 20. It
        // is safe because a literal of the program is constant, never goes, and ends with a zero byte.
        private nonisolated(unsafe) let start: UnsafePointer<UInt8>

        /// The line.
        public let line: UInt32

        /// - Parameters:
        ///   - file: what `#fileID` says.
        ///   - line: what `#line` says.
        public init(file: StaticString = #fileID, line: UInt32 = #line) {
            require(file.hasPointerRepresentation, "the file of an origin is what #fileID says")
            start = file.utf8Start
            self.line = line
        }

        /// The module and the file, as `TTLStore/Server.swift`.
        public var file: String { String(cString: start) }

        /// For example `TTLStore/Server.swift:42`.
        public var description: String { "\(file):\(line)" }

        public static func == (left: Origin, right: Origin) -> Bool {
            left.line == right.line && (left.start == right.start || left.file == right.file)
        }

        public func hash(into hasher: inout Hasher) {
            hasher.combine(file)
            hasher.combine(line)
        }
    }
}
