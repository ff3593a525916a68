/// A reason why a campaign cannot run: a directory that cannot be written, or variables that make no sense.
public struct CampaignError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The reason, in words.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
