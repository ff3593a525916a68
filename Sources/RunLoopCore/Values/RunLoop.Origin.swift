extension RunLoop {
    /// The place in a program where a timer or source was made: what reports call things by that have no name.
    ///
    /// Everything that can be scheduled takes it from `#fileID` and `#line` where it is made; who makes such things for
    /// others passes on their place. It costs no allocation.
    public struct Origin: Sendable, Hashable, CustomStringConvertible {
        // The address of the file's name in 48 bits and the line in 16: 8 bytes in each of a million timers, and not
        // the 20 of a `StaticString` and a number. It is safe to read there because a literal of the program is
        // constant, never goes, and ends with a zero byte.
        private let word: UInt64

        private var start: UnsafePointer<UInt8> { UnsafePointer(bitPattern: UInt(word & 0xffff_ffff_ffff))! }

        /// The line, up to 65,535.
        public var line: UInt32 { UInt32(word >> 48) }

        /// - Parameters:
        ///   - file: what `#fileID` says.
        ///   - line: what `#line` says.
        public init(file: StaticString = #fileID, line: UInt32 = #line) {
            require(file.hasPointerRepresentation, "the file of an origin is what #fileID says")
            word = UInt64(UInt(bitPattern: file.utf8Start)) | UInt64(min(line, 0xffff)) << 48
        }

        /// The module and the file, as `TTLStore/Server.swift`.
        public var file: String { String(cString: start) }

        /// For example `TTLStore/Server.swift:42`.
        public var description: String { "\(file):\(line)" }

        public static func == (left: Origin, right: Origin) -> Bool {
            left.word == right.word || (left.line == right.line && left.file == right.file)
        }

        public func hash(into hasher: inout Hasher) {
            hasher.combine(file)
            hasher.combine(line)
        }
    }
}
