public import RunLoopSimulation

extension Campaign {
    /// Runs the campaign, and blocks the calling thread until it ends.
    ///
    /// The campaign's other processes run this program again, which has to reach the same call. There, the call runs
    /// the schedules and does not return. The standard output of these processes is discarded.
    ///
    /// - Parameters:
    ///   - arguments: the command that runs the program, its name first; by default the arguments of this process.
    ///   - body: the program to explore; see ``Exploration/run(_:)``.
    /// - Returns: the result of this shard. In a process that runs the schedules of another campaign, an empty one.
    /// - Throws: ``CampaignError``.
    @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
    public func run(
        arguments: [String] = CommandLine.arguments, _ body: (Simulation) throws -> Void
    ) throws(CampaignError) -> Result {
        guard var runner = exploration.makeProcesses(for: name, arguments, body) else {
            return Result(name: name, seed: exploration.seed, shards: [.whole], required: required)
        }
        let shard = if let shard { shard } else { try Shard.ofEnvironment() }
        var run = try CampaignRun(self, shard)
        return try run.run(&runner)
    }

    /// Adds up the results of shards, whose directories may come from many machines.
    ///
    /// The merged directory has the files of all of them, and the next campaign can begin with it.
    ///
    /// - Parameters:
    ///   - directories: the directories of the shards; none if all have shared `directory`.
    ///   - directory: the directory for all files, which is made if necessary.
    /// - Throws: ``CampaignError``, also if there is no result, or if the results belong to different campaigns.
    public static func merge(_ directories: [String], into directory: String) throws(CampaignError) -> Result {
        let target = try Folder(directory, writer: "merge")
        for source in directories { try target.take(from: Folder(reading: source)) }
        return try target.result()
    }
}
