/// Explores a program for a night, on one machine or on many, and keeps the findings for the next night.
///
/// ```swift
/// let eightHours = Exploration(schedules: .max, for: .seconds(8 * 3_600))
/// let campaign = Campaign("store", of: eightHours, in: "findings", requiring: ["a write was torn"])
/// let result = try campaign.run { simulation in
///     try exploreStore(simulation)
/// }
/// print(result)
/// ```
///
/// A campaign does not end with the first fault. It groups faults by kind and sentence, makes the first schedule of each
/// group short, and counts the others. Each group is a file of the directory, with the token and the report. The next
/// campaign replays these schedules first, and continues with new ones where this one has stopped.
///
/// Other processes run the schedules, so faults that trap or never end are found, and a process that has grown is
/// replaced. A shard of a campaign runs its part of the schedules, and its results are a file of the directory too;
/// ``merge(_:into:)`` adds them up. While it runs, the campaign writes a line of progress to standard error: once a
/// second to a terminal, and otherwise once a minute. See <doc:Campaigns> for how to start shards.
///
/// A `Sendable` value.
public struct Campaign: Sendable {
    /// The name of the campaign and of its files.
    public var name: String

    /// The limits of the campaign, and its seed. The duration is for each shard. The number of schedules is for all
    /// shards together; `.max` for no limit.
    public var exploration: Exploration

    /// The directory of the campaign's files, which the campaign makes if necessary. It belongs to this campaign alone,
    /// and shards may share it.
    public var directory: String

    /// The shard to run; `nil` for the shard that the environment names, by `RUNLOOP_SHARD` and `RUNLOOP_SHARDS`, or as
    /// the indexed jobs of Kubernetes, the arrays of Slurm, and the parallel jobs of GitLab do. A run throws
    /// ``CampaignError`` if a variable makes no sense, or the number of shards is missing.
    public var shard: Shard?

    /// The marks that at least one schedule has to meet.
    public var required: [String]

    /// Creates a campaign.
    public init(
        _ name: String, of exploration: Exploration, in directory: String, shard: Shard? = nil,
        requiring marks: [String] = []
    ) {
        (self.name, self.exploration, self.directory) = (name, exploration, directory)
        (self.shard, required) = (shard, marks)
    }
}
