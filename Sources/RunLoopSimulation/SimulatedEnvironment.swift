internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// The environment of a simulated process: lines such as `HOME=/root`, where C programs find them.
@_spi(Ports) public final class SimulatedEnvironment {
    private var lines: [UnsafeMutablePointer<CChar>]
    /// The table most recently made for a caller.
    private var table: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?

    /// - Parameter lines: the variables, each ending in a zero byte.
    public init(_ lines: [[CChar]]) {
        self.lines = lines.map(Self.keep)
    }

    /// Creates an environment of these variables, in the order of their names.
    public convenience init(_ variables: [String: String]) {
        self.init(variables.sorted { $0.key < $1.key }.map { Array("\($0.key)=\($0.value)".utf8CString) })
    }

    deinit {
        table?.deallocate()
    }

    /// The lines, each with its terminating zero byte.
    public var copies: [[CChar]] { lines.map { Array(UnsafeBufferPointer(start: $0, count: strlen($0) + 1)) } }

    /// The variables by name. Of several variables with one name the first counts, as for programs.
    public var variables: [String: String] {
        let pairs = lines.map { line in
            let parts = String(cString: line).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (String(parts[0]), String(parts.dropFirst().first ?? ""))
        }
        return Dictionary(pairs) { first, _ in first }
    }

    // MARK: Calls of C programs

    /// Returns the lines and a null pointer, valid until the next call.
    func makeTable() -> UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> {
        table?.deallocate()
        let made = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: lines.count + 1)
        for (index, line) in lines.enumerated() { (made + index).initialize(to: line) }
        (made + lines.count).initialize(to: nil)
        table = made
        return made
    }

    /// Returns the value of a variable, which stays forever; `nil` if there is none.
    public func value(of name: UnsafePointer<CChar>) -> UnsafeMutablePointer<CChar>? {
        lines.first { Self.isLine($0, of: name) }.map { $0 + strlen(name) + 1 }
    }

    /// Sets a variable, or removes it if `value` is `nil`.
    public func set(_ name: UnsafePointer<CChar>, _ value: UnsafePointer<CChar>?) {
        guard let value else { return lines.removeAll { Self.isLine($0, of: name) } }
        let line = UnsafeBufferPointer(start: name, count: strlen(name)) + [CChar(UInt8(ascii: "="))]
        put(Self.keep(line + UnsafeBufferPointer(start: value, count: strlen(value) + 1)), name)
    }

    /// Makes the caller's line a part of the environment, which follows the caller's changes to it.
    func put(_ line: UnsafeMutablePointer<CChar>) {
        let name = UnsafeBufferPointer(start: line, count: strlen(line)).prefix { $0 != CChar(UInt8(ascii: "=")) } + [0]
        name.withUnsafeBufferPointer { put(line, $0.baseAddress!) }
    }

    private func put(_ line: UnsafeMutablePointer<CChar>, _ name: UnsafePointer<CChar>) {
        if let index = lines.firstIndex(where: { Self.isLine($0, of: name) }) {
            lines[index] = line
        } else {
            lines.append(line)
        }
    }

    func removeAll() {
        lines.removeAll()
    }

    private static func isLine(_ line: UnsafePointer<CChar>, of name: UnsafePointer<CChar>) -> Bool {
        let length = strlen(name)
        return length > 0 && strncmp(line, name, length) == 0 && line[length] == CChar(UInt8(ascii: "="))
    }

    // MARK: Lines that stay

    /// The addresses of lines that were made here, which stay forever, as the C library's do: a program may keep one in
    /// a static variable, which all processes of a test share.
    private static let known = Locked<[[CChar]: UInt]>([:])

    /// Returns the address of a copy of the line, which stays forever.
    public static func keep(_ line: [CChar]) -> UnsafeMutablePointer<CChar> {
        let address = known.withLock { known in
            if let address = known[line] { return address }
            let address = UInt(bitPattern: strdup(line))
            known[line] = address
            return address
        }
        return UnsafeMutablePointer(bitPattern: address)!
    }
}
