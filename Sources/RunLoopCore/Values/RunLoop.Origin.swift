extension RunLoop {
    /// The place in a program where a timer or a source was made. Reports use it for items without a name.
    ///
    /// Everything that can be scheduled takes its origin from `#fileID` and `#line` of the call that makes it. A
    /// function that makes items for its callers should take an origin as well and pass it along. An origin allocates
    /// nothing. A value and `Sendable`.
    public struct Origin: Sendable, Hashable, CustomStringConvertible {
        // The address of the file's name in 48 bits and the line in 16: 8 bytes in each of a million timers, instead of
        // 20 for a `StaticString` and a number. Reading there is safe because a literal of the program is constant,
        // never goes away, and ends with a zero byte.
        /// The file and the line; equal places may have different bits.
        let bits: UInt64

        /// The line, up to 65,535.
        public var line: UInt32 { UInt32(bits >> 48) }

        /// Creates the origin of the call.
        ///
        /// - Parameters:
        ///   - file: the file, as `#fileID` gives it.
        ///   - line: the line, as `#line` gives it.
        public init(file: StaticString = #fileID, line: UInt32 = #line) {
            require(file.hasPointerRepresentation, "the file of an origin is what #fileID says")
            assert(UInt(bitPattern: file.utf8Start) >> 48 == 0, "the address of a literal has more than 48 bits")
            bits = UInt64(UInt(bitPattern: file.utf8Start)) | UInt64(min(line, 0xffff)) << 48
        }

        /// The module and the file, for example `TTLStore/Server.swift`.
        public var file: String {
            String(cString: UnsafePointer<UInt8>(bitPattern: UInt(bits & 0xffff_ffff_ffff))!)
        }

        /// The file and the line, for example `TTLStore/Server.swift:42`.
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
