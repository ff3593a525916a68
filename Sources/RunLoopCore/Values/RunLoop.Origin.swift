extension RunLoop {
    /// The place in a program where a timer or a source was made. Reports use it for items without a name.
    ///
    /// Everything that can be scheduled takes it from `#fileID` and `#line` of the call that makes it. If you make such
    /// things for others, pass their place on. It allocates nothing. A value and `Sendable`.
    public struct Origin: Sendable, Hashable, CustomStringConvertible {
        // The address of the file's name in 48 bits and the line in 16: 8 bytes in each of a million timers, instead of
        // 20 for a `StaticString` and a number. Reading there is safe because a literal of the program is constant,
        // never goes away, and ends with a zero byte.
        private let word: UInt64
        /// Distinguishes it from others; equal places may have different bits.
        var bits: UInt64 { word }

        private var start: UnsafePointer<UInt8> { UnsafePointer(bitPattern: UInt(word & 0xffff_ffff_ffff))! }

        /// The line, up to 65,535.
        public var line: UInt32 { UInt32(word >> 48) }

        /// The place of the call, unless another is given.
        ///
        /// - Parameters:
        ///   - file: what `#fileID` says.
        ///   - line: what `#line` says.
        public init(file: StaticString = #fileID, line: UInt32 = #line) {
            require(file.hasPointerRepresentation, "the file of an origin is what #fileID says")
            word = UInt64(UInt(bitPattern: file.utf8Start)) | UInt64(min(line, 0xffff)) << 48
        }

        /// The module and the file, for example `TTLStore/Server.swift`.
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
