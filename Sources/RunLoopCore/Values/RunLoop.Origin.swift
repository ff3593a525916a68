extension RunLoop {
    /// The place in a program where a timer or a source was made. Reports use it for items without a name.
    ///
    /// Everything that can be scheduled takes it from `#fileID` and `#line` of the call that makes it. If you make such
    /// things for others, pass their place on. It allocates nothing. A value and `Sendable`.
    public struct Origin: Sendable, Hashable, CustomStringConvertible {
        // The address of the file's name in 48 bits and the line in 16: 8 bytes in each of a million timers, instead of
        // 20 for a `StaticString` and a number. Reading there is safe because a literal of the program is constant,
        // never goes away, and ends with a zero byte.
        /// Distinguishes it from others; equal places may have different bits.
        let bits: UInt64

        /// The line, up to 65,535.
        public var line: UInt32 { UInt32(bits >> 48) }

        /// The place of the call, unless another is given.
        ///
        /// - Parameters:
        ///   - file: what `#fileID` says.
        ///   - line: what `#line` says.
        public init(file: StaticString = #fileID, line: UInt32 = #line) {
            require(file.hasPointerRepresentation, "the file of an origin is what #fileID says")
            bits = UInt64(UInt(bitPattern: file.utf8Start)) | UInt64(min(line, 0xffff)) << 48
        }

        /// The module and the file, for example `TTLStore/Server.swift`.
        public var file: String {
            String(cString: UnsafePointer<UInt8>(bitPattern: UInt(bits & 0xffff_ffff_ffff))!)
        }

        /// For example `TTLStore/Server.swift:42`.
        public var description: String { "\(file):\(line)" }

        public static func == (left: Origin, right: Origin) -> Bool {
            left.bits == right.bits || (left.line == right.line && left.file == right.file)
        }

        public func hash(into hasher: inout Hasher) {
            hasher.combine(file)
            hasher.combine(line)
        }
    }
}
