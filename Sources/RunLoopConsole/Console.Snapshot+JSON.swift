internal import FoundationEssentials

extension Console.Snapshot {
    /// Reads a snapshot from a line of JSON, with or without the end of the line.
    ///
    /// - Throws: `DecodingError` if the line is no snapshot, or one of another version.
    public init(json line: [UInt8]) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(line))
        guard version == 1 else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: "a snapshot of version \(version); this program knows 1"))
        }
    }

    /// The snapshot as a line of JSON, with its end.
    public var json: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do { return try Array(encoder.encode(self)) + [UInt8(ascii: "\n")] } catch {
            fatalError("a snapshot has finite numbers, texts and lists: \(error)")
        }
    }
}
