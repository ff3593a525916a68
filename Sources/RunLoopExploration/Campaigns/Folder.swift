internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation

/// The directory of a campaign: a file for each shard, and one for each group of faults.
struct Folder {
    let path: String
    /// A name that no other writer has, for incomplete files.
    private let writer: String

    /// Opens a directory, which is made with its ancestors if necessary.
    init(_ path: String, writer: String) throws(CampaignError) {
        (self.path, self.writer) = (path, writer)
        var part = path.hasPrefix("/") ? "" : "."
        for name in path.split(separator: "/") {
            part += "/" + name
            guard mkdir(part, 0o777) == 0 || errno == EEXIST else { throw Self.failure("make \(part)") }
        }
    }

    init(reading path: String) {
        (self.path, writer) = (path, "")
    }

    private static func failure(_ action: String) -> CampaignError {
        CampaignError("cannot \(action): \(String(cString: strerror(errno)))")
    }

    // MARK: Files

    private func names(_ prefix: String) throws(CampaignError) -> [String] {
        guard let directory = opendir(path) else { throw Self.failure("read \(path)") }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix(prefix), name.hasSuffix(".txt") { names.append(name) }
        }
        return names.sorted()
    }

    /// - Parameter kind: the kind of the file, in words.
    private func read<File>(
        _ name: String, _ kind: String, _ parse: (String) -> File?
    ) throws(CampaignError) -> File {
        let text: String
        do {
            text = try TextFile.read("\(path)/\(name)")
        } catch {
            throw CampaignError("cannot read \(error)")
        }
        guard let file = parse(text) else {
            throw CampaignError("\(path)/\(name) is not \(kind); move it elsewhere")
        }
        return file
    }

    /// Writes a file. Others see either its old or its new contents.
    private func write(_ text: String, to name: String) throws(CampaignError) {
        let (place, temporary) = ("\(path)/\(name)", "\(path)/.\(name).\(writer)")
        do {
            try TextFile.write(text, to: temporary)
        } catch {
            throw CampaignError("cannot write \(error)")
        }
        guard rename(temporary, place) == 0 else { throw Self.failure("write \(place)") }
    }

    // MARK: Findings

    /// The findings of all campaigns so far.
    func findings() throws(CampaignError) -> [FindingFile] {
        try names("finding-").map(finding(named:))
    }

    private func finding(named name: String) throws(CampaignError) -> FindingFile {
        try read(name, "the file of a finding", FindingFile.init)
    }

    /// Returns the finding of a group; `nil` if there is none.
    func finding(of group: FaultGroup) throws(CampaignError) -> FindingFile? {
        access(path(of: group), F_OK) == 0 ? try finding(named: group.fileName) : nil
    }

    func path(of group: FaultGroup) -> String { "\(path)/\(group.fileName)" }

    func keep(_ finding: FindingFile) throws(CampaignError) {
        try write(finding.text, to: finding.group.fileName)
    }

    // MARK: Shards

    func shards() throws(CampaignError) -> [ShardFile] {
        try names("shard-").map { name throws(CampaignError) in
            try read(name, "the result of a shard", ShardFile.init)
        }
    }

    func keep(_ shard: ShardFile) throws(CampaignError) {
        try write(shard.text, to: shard.fileName)
    }

    // MARK: Merging

    /// Copies the files of another directory. Of two findings of a group, the one with the shorter schedule stays.
    func take(from other: Folder) throws(CampaignError) {
        var known: [FaultGroup: Int] = [:]
        for finding in try findings() { known[finding.group] = finding.token.departures.count }
        for finding in try other.findings()
        where finding.token.departures.count < known[finding.group] ?? .max { try keep(finding) }
        for shard in try other.shards() { try keep(shard) }
    }

    /// Returns the sum of the results of the latest campaign's shards.
    func result() throws(CampaignError) -> Campaign.Result {
        let all = try shards()
        guard let latest = all.max(by: { $0.began < $1.began }) else {
            throw CampaignError("\(path) has no result of a campaign")
        }
        if let other = all.first(where: { $0.name != latest.name }) {
            throw CampaignError("\(path) has results of two campaigns, \(latest.name) and \(other.name)")
        }
        // An earlier campaign may have had another number of shards.
        let shards = all.filter { $0.shard.count == latest.shard.count && $0.seed == latest.seed }
        var result = Campaign.Result(
            name: latest.name, seed: latest.seed, shards: shards.map(\.shard).sorted { $0.index < $1.index },
            required: [])
        var times: [FaultGroup: Int] = [:]
        for shard in shards {
            result.schedules += shard.schedules
            result.duration = max(result.duration, shard.duration)
            result.marks.add(shard.marks)
            for mark in shard.required where !result.required.contains(mark) { result.required.append(mark) }
            times.merge(shard.times, uniquingKeysWith: +)
        }
        result.findings = try findings().map { self.result($0, times: times[$0.group] ?? 0) }
        return result
    }

    func result(_ finding: FindingFile, times: Int = 0) -> Campaign.Result.Finding {
        .init(fault: finding.fault, token: finding.token, times: times, file: path(of: finding.group))
    }
}
