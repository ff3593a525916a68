internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation

/// A campaign, or a shard of it, as it runs.
struct CampaignRun {
    private let campaign: Campaign
    private let folder: Folder
    private var file: ShardFile
    private var findings: [FaultGroup: Campaign.Result.Finding] = [:]
    /// The lengths of the longest runs so far.
    private var length = RunLength()
    private let start = ContinuousClock.now
    private var progress = ProgressLine()
    private var lastKept = ContinuousClock.now

    /// The number of schedules that a shard takes at once. The next schedules belong to the next shard.
    private static let block = 32
    /// The longest time between two writes of the shard's file.
    private static let longestUnkept = Duration.seconds(10)

    /// Opens the directory, and determines where to continue.
    init(_ campaign: Campaign, _ shard: Campaign.Shard) throws(CampaignError) {
        self.campaign = campaign
        folder = try Folder(campaign.directory, writer: "shard-\(shard.index)-of-\(shard.count)")
        file = ShardFile(campaign.name, seed: campaign.exploration.seed, shard, began: time(nil))
        file.required = campaign.required
        let former = try folder.shards()
        if let other = former.first(where: { $0.name != campaign.name }) {
            throw CampaignError(
                "\(campaign.directory) belongs to the campaign \(other.name); take another directory")
        }
        let own = former.filter { $0.seed == file.seed && $0.shard == shard }
        // With another number of shards, schedules of any of them may have been tried.
        let others = former.filter { $0.seed == file.seed && $0.shard.count != shard.count }
        file.next = (own.isEmpty ? others : own).map(\.next).max() ?? 0
    }

    mutating func run(_ runner: inout some Runner & ~Copyable) throws(CampaignError) -> Campaign.Result {
        try replay(&runner)
        let exploration = campaign.exploration
        let end = exploration.duration.map { start + $0 }
        let (share, rest) = exploration.schedules.quotientAndRemainder(dividingBy: file.shard.count)
        var left = share + (file.shard.index < rest ? 1 : 0)
        while left > 0, end.map({ ContinuousClock.now < $0 }) ?? true {
            let block = nextBlock(atMost: left)
            try explore(block, &runner)
            left -= block.count
            file.next = block.upperBound
            try look(until: end, left: exploration.schedules == .max ? nil : left)
        }
        progress.end()
        return try keep()
    }

    private func nextBlock(atMost left: Int) -> Range<Int> {
        let shard = file.shard
        var number = (file.next + Self.block - 1) / Self.block
        number += (shard.index - number % shard.count + shard.count) % shard.count
        return number * Self.block..<number * Self.block + min(left, Self.block)
    }

    // MARK: Runs

    /// Replays the findings of earlier campaigns.
    private mutating func replay(_ runner: inout some Runner & ~Copyable) throws(CampaignError) {
        let known = try folder.findings()
        for former in known { findings[former.group] = folder.result(former) }
        for former in known {
            let run = runner.replay(former.token, .none)
            guard let fault = run.fault else { continue }
            if FaultGroup(of: fault) == former.group { count(former.group) } else { try note(run, &runner) }
        }
        try keep()
    }

    private mutating func explore(
        _ block: Range<Int>, _ runner: inout some Runner & ~Copyable
    ) throws(CampaignError) {
        var numbers = block
        while !numbers.isEmpty {
            guard let (number, run) = runner.explore(numbers, length: &length, marks: &file.marks) else {
                file.schedules += numbers.count
                return
            }
            try note(run, &runner, number)
            // A process may also end between these runs and the ones before.
            guard numbers.contains(number) else { continue }
            file.schedules += number - numbers.lowerBound + 1
            numbers = number + 1..<block.upperBound
        }
    }

    private mutating func count(_ group: FaultGroup) {
        file.times[group, default: 0] += 1
        findings[group]!.times += 1
    }

    /// Counts a fault, and makes the schedule of a new one short.
    ///
    /// - Parameter number: the number of the schedule; `nil` for the schedule of another finding.
    private mutating func note(
        _ run: Run, _ runner: inout some Runner & ~Copyable, _ number: Int? = nil
    ) throws(CampaignError) {
        let fault = run.fault!
        if fault == WorkerProcess.neverCame { throw CampaignError(fault.description) }
        let group = FaultGroup(of: fault)
        let known = findings[group]
        guard known?.times ?? 0 == 0 else { return count(group) }
        // Another shard may have found the fault meanwhile. The file of a schedule that passes now is replaced.
        var finding = try folder.finding(of: group)
        if finding == nil || finding?.token == known?.token {
            finding = makeShort(run, number, &runner)
            try folder.keep(finding!)
        }
        findings[group] = folder.result(finding!)
        count(group)
        try keep()
    }

    private func makeShort(_ run: Run, _ number: Int?, _ runner: inout some Runner & ~Copyable) -> FindingFile {
        let finding = campaign.exploration.finding(run, number, length, file.marks, &runner)
        // A shorter schedule may fail with other words.
        let isSame = FaultGroup(of: finding.fault) == FaultGroup(of: run.fault!)
        return FindingFile(
            fault: isSame ? finding.fault : run.fault!, token: isSame ? finding.token : finding.first,
            report: finding.fileReport)
    }

    // MARK: Between the runs

    private mutating func look(until end: ContinuousClock.Instant?, left: Int?) throws(CampaignError) {
        let now = ContinuousClock.now
        let state = ProgressLine.State(
            name: campaign.name, schedules: file.schedules, findings: findings.values.count { $0.times > 0 },
            missing: file.marks.missing(of: file.required), required: file.required.count,
            timeLeft: end.map { $0 - now }, schedulesLeft: left)
        progress.show(state, at: now)
        if now - lastKept >= Self.longestUnkept { try keep() }
    }

    /// Writes the file of the shard.
    @discardableResult
    private mutating func keep() throws(CampaignError) -> Campaign.Result {
        lastKept = ContinuousClock.now
        file.duration = lastKept - start
        try folder.keep(file)
        return Campaign.Result(
            name: file.name, seed: file.seed, shards: [file.shard], schedules: file.schedules, duration: file.duration,
            marks: file.marks, required: file.required, findings: findings.values.sorted { $0.file < $1.file })
    }
}
