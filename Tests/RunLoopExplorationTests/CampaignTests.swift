import Glibc
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopExploration

/// A program that fails in two ways, one of which has a number in its words.
private func twoFaults(_ simulation: Simulation) throws {
    let number = simulation.choice("number", of: Array(0..<50))
    simulation.sometimes("a number was even", if: number % 2 == 0)
    simulation.sometimes("a number was negative", if: number < 0)
    if number > 0, number % 10 == 0 { throw Broken(description: "\(number) is a multiple of 10") }
    if number == 7 { throw Broken(description: "the number is odd,\nand 100% lucky") }
}

@Suite("Campaigns")
struct CampaignTests {
    private let directory = TemporaryDirectory()

    private func campaign(
        _ schedules: Int, in name: String = "a", seed: UInt64 = 0, shard: Campaign.Shard = .whole,
        requiring marks: [String] = []
    ) -> Campaign {
        Campaign(
            "test", of: Exploration(schedules: schedules, seed: seed), in: directory[name], shard: shard,
            requiring: marks)
    }

    /// Runs a campaign in this process.
    private func run(
        _ campaign: Campaign, _ body: (Simulation) throws -> Void = twoFaults
    ) throws -> Campaign.Result {
        try withoutActuallyEscaping(body) { body in
            let exploration = campaign.exploration
            let portfolio = Portfolio(
                seed: exploration.seed, former: exploration.former, strategies: exploration.strategies)
            var runner = LocalRunner(portfolio: portfolio, limits: exploration.limits, body: body)
            var run = try CampaignRun(campaign, try #require(campaign.shard))
            return try run.run(&runner)
        }
    }

    // MARK: Findings

    @Test("a campaign continues after a fault, groups faults by their words without numbers, and counts all schedules")
    func groups() throws {
        let tally = Tally()
        let result = try run(campaign(640, requiring: ["a number was even", "a number was negative"])) {
            try tally.count($0, twoFaults)
        }
        #expect(result.schedules == 640 && result.findings.count == 2 && !result.hasPassed)
        #expect(result.marks["a number was even"] > 50 && result.missing == ["a number was negative"])
        // Replays do not count.
        let times = result.findings.reduce(0) { $0 + $1.times }
        #expect(times > 20 && times < tally.failures, "\(result)")
        let lucky = try #require(result.findings.first { $0.fault.description.contains("lucky") })
        #expect("\(lucky.token)".hasSuffix(":number@0=7"))
        let text = contents(of: lucky.file)
        #expect(text.hasPrefix("fault expectation the number is odd,%0aand 100%25 lucky\ntoken \(lucky.token)\n\n"))
        #expect(text.contains("To replay it: \(lucky.token)"))
        let lines = "\(result)".split(separator: "\n")
        #expect(lines[0].hasPrefix("test: 640 schedules with seed 0 in 0:00:0"))
        #expect(lines.contains("never met in 640 schedules: a number was negative"))
    }

    private final class Tally: Sendable {
        private let counts = Locked((seeds: Set<UInt64>(), failures: 0))
        var seeds: Set<UInt64> { counts.withLock(\.seeds) }
        var failures: Int { counts.withLock(\.failures) }

        func count(_ simulation: Simulation, _ body: (Simulation) throws -> Void) rethrows {
            counts.withLock { _ = $0.seeds.insert(simulation.seed) }
            do {
                try body(simulation)
            } catch {
                counts.withLock { $0.failures += 1 }
                throw error
            }
        }
    }

    @Test("the next campaign replays the findings, reports which pass now, and continues with other schedules")
    func next() throws {
        let (first, second) = (Tally(), Tally())
        func onlyLucky(_ simulation: Simulation) throws {
            do { try twoFaults(simulation) } catch  where "\(error)".contains("multiple") {}
        }
        let found = try run(campaign(64)) { try first.count($0, twoFaults) }
        #expect(found.findings.count == 2)
        // A single schedule besides the replays: the findings come from their files.
        let result = try run(campaign(1)) { try second.count($0, onlyLucky) }
        let times = result.findings.map { ($0.fault.description.contains("lucky"), $0.times) }
        #expect(times.contains { $0 == (true, 1) } && times.contains { $0 == (false, 0) }, "\(result)")
        #expect("\(result)".contains("passes now: "))
        #expect(second.seeds.subtracting(first.seeds).count == 1)
        // A fault that has come back is counted again, and the files of others stay untouched.
        let third = try run(campaign(1))
        #expect(
            third.findings.allSatisfy { $0.times >= 1 } && third.findings.map(\.token) == found.findings.map(\.token))
        // Another seed begins anew.
        let other = Tally()
        _ = try run(campaign(32, seed: 1)) { other.count($0, { _ in }) }
        let portfolio = Portfolio(seed: 1, former: [], strategies: [.random])
        let plans = (0..<32).map { portfolio.plan($0, length: RunLength(), novelty: Novelty()) }
        #expect(other.seeds.isSuperset(of: plans.map(\.seed)))
    }

    @Test("a schedule that fails in the way of one that passes now takes its place")
    func replaced() throws {
        func explore(failing number: Int) throws -> Campaign.Result {
            try run(campaign(640)) { simulation in
                guard simulation.choice("number", of: Array(0..<50)) != number else {
                    throw Broken(description: "\(number) is forbidden")
                }
            }
        }
        let first = try explore(failing: 10).findings
        let second = try explore(failing: 20).findings
        #expect(first.count == 1 && second.count == 1 && first[0].file == second[0].file)
        #expect("\(second[0].token)".hasSuffix(":number@0=20") && second[0].times > 1)
        #expect(contents(of: second[0].file).contains("20 is forbidden\nFound with schedule"))
    }

    @Test("a finding that another shard has made short meanwhile is taken over")
    func sharedFinding() throws {
        let token = ScheduleToken(seed: 3, departures: [.init(place: "number", step: 0, instead: .possibility(20))])
        let other = FindingFile(fault: .init(.expectation, "20 is a multiple of 10"), token: token, report: "short")
        let result = try run(campaign(640)) { simulation in
            do { try twoFaults(simulation) } catch  where "\(error)".contains("multiple") {
                directory.write(other.text, to: "a/\(other.group.fileName)")
                throw error
            }
        }
        let finding = try #require(result.findings.first { $0.fault == other.fault })
        #expect(finding.token == token && finding.times > 1 && contents(of: finding.file) == other.text)
        #expect(result.findings.count == 2)
    }

    @Test("a campaign keeps to its directory")
    func directories() throws {
        _ = try run(campaign(1))
        var other = campaign(1)
        other.name = "other"
        #expect(throws: CampaignError.self) { try run(other) }
        directory.write("nonsense", to: "b")
        #expect(throws: CampaignError.self) { try run(campaign(1, in: "b/c")) }
        directory.write("nonsense", to: "a/finding-x.txt")
        #expect(throws: CampaignError.self) { try run(campaign(1)) }
        #expect(throws: CampaignError.self) { try Campaign.merge([], into: directory["empty"]) }
    }

    // MARK: Shards

    @Test("shards try different schedules, together all of the campaign, and their results add up", arguments: [1, 10])
    func shards(directories: Int) throws {
        let (all, whole) = (Tally(), Tally())
        func campaign(_ directory: String, _ shard: Campaign.Shard = .whole) -> Campaign {
            var campaign = self.campaign(3_200, in: directory, shard: shard)
            // Schedules near to new ones depend on the history of this shard.
            campaign.exploration.strategies.remove(.novelty)
            return campaign
        }
        let expected = try run(campaign("whole")) { try whole.count($0, twoFaults) }
        var (seeds, times) = (0, [String: Int]())
        for index in 0..<10 {
            let own = Tally()
            let shard = campaign("\(index % directories)", .init(index: index, of: 10))
            let result = try run(shard) { simulation in try own.count(simulation) { try all.count($0, twoFaults) } }
            #expect(result.schedules == 320)
            seeds += own.seeds.count
            for finding in result.findings {
                times[FaultGroup(of: finding.fault).fileName, default: 0] += finding.times
            }
        }
        #expect(all.seeds == whole.seeds)
        // Short schedules have the seed 0, and several shards try them.
        #expect(seeds >= all.seeds.count && seeds <= all.seeds.count + 20)
        let sources = (1..<directories).map { directory["\($0)"] }
        let merged = try Campaign.merge(sources, into: directory["0"])
        #expect(merged.schedules == 3_200 && merged.shards.map(\.index) == Array(0..<10))
        #expect(merged.findings.map(\.fault.kind) == expected.findings.map(\.fault.kind))
        for finding in merged.findings { #expect(finding.times == times[FaultGroup(of: finding.fault).fileName]) }
        #expect(merged.marks.counts.keys == expected.marks.counts.keys)
        #expect(!"\(merged)".contains("no result of shard"))
        // With another number of shards, the next campaign continues after all of them.
        let later = Tally()
        _ = try run(self.campaign(32, in: "0", shard: .init(index: 3, of: 4))) { later.count($0, { _ in }) }
        #expect(later.seeds.intersection(all.seeds).count <= 2)
    }

    @Test("a shard without a result is missed")
    func absent() throws {
        for index in [0, 2] { _ = try run(campaign(64, shard: .init(index: index, of: 4)), { _ in }) }
        let merged = try Campaign.merge([], into: directory["a"])
        #expect("\(merged)".contains("2 of 4 shards\nno result of shard 1, 3\nnothing has failed"))
    }

    @Test("the environment names a shard as Kubernetes, Slurm, GitLab or a person does")
    func environment() throws {
        func shard(_ variables: [String: String]) throws -> Campaign.Shard { try .init { variables[$0] } }
        let slurm = ["SLURM_ARRAY_TASK_ID": "14", "SLURM_ARRAY_TASK_COUNT": "5"]
        let steps = slurm.merging(["SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_STEP": "2"]) { $1 }
        #expect(try shard([:]) == .whole)
        #expect(try shard(["RUNLOOP_SHARD": "3", "RUNLOOP_SHARDS": "10"]) == .init(index: 3, of: 10))
        #expect(try shard(["JOB_COMPLETION_INDEX": "9", "RUNLOOP_SHARDS": "10"]) == .init(index: 9, of: 10))
        #expect(try shard(steps) == .init(index: 2, of: 5))
        #expect(try shard(["CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "4"]) == .init(index: 0, of: 4))
        // The variables set by a person come first.
        #expect(try shard(steps.merging(["RUNLOOP_SHARD": "0", "RUNLOOP_SHARDS": "1"]) { $1 }) == .whole)
        for wrong in [
            slurm, ["JOB_COMPLETION_INDEX": "3"], ["RUNLOOP_SHARD": "10", "RUNLOOP_SHARDS": "10"],
            ["RUNLOOP_SHARD": "x", "RUNLOOP_SHARDS": "10"], ["CI_NODE_INDEX": "0", "CI_NODE_TOTAL": "4"],
            ["RUNLOOP_SHARD": "0", "RUNLOOP_SHARDS": "0"],
        ] { #expect(throws: CampaignError.self) { try shard(wrong) } }
    }

    // MARK: Words

    @Test("files are read as they were written")
    func files() throws {
        var shard = ShardFile("a %\nname", seed: .max, .init(index: 1, of: 3), began: 12)
        (shard.next, shard.schedules, shard.duration) = (64, 60, .milliseconds(1_234))
        (shard.required, shard.marks) = (["m 1", "100%\n"], Simulation.Marks(["m 1": 3, "100%\n": 0]))
        shard.times = [FaultGroup(.trap, "it # ended\n2%"): 5, FaultGroup(.hang, ""): 1]
        let read = try #require(ShardFile(shard.text))
        #expect(read.text == shard.text && read.marks == shard.marks && read.times == shard.times)
        #expect(read.name == shard.name && read.required == shard.required && read.shard == shard.shard)
        for cut in 0..<shard.text.split(separator: "\n").count {
            var lines = shard.text.split(separator: "\n")
            lines[cut] = "nonsense"
            #expect(ShardFile(lines.joined(separator: "\n")) == nil)
        }
        #expect(FindingFile("fault nonsense x\ntoken 0:\n\n") == nil)
    }

    @Test("progress is a line")
    func progress() {
        var state = ProgressLine.State(name: "store", schedules: 1_204_000, findings: 1)
        #expect(ProgressLine.line(state, rate: 3_412.7) == "store: 1,204,000 schedules, 3,412 a second, 1 finding")
        (state.missing, state.required, state.timeLeft) = (["a", "b"], 5, .seconds(22_330))
        let expected = "store: 1,204,000 schedules, 10 a second, 1 finding, 2 of 5 marks missing (a and others), "
        #expect(ProgressLine.line(state, rate: 10) == expected + "6:12:10 left")
        // The limit that is reached first.
        state.schedulesLeft = 610
        #expect(ProgressLine.line(state, rate: 10) == expected + "0:01:01 left")
    }

    // MARK: Processes

    @Test("a campaign in other processes continues after a trap, and keeps its words")
    func processes() throws {
        func run() throws -> Campaign.Result {
            try Campaign("processes", of: Exploration(schedules: 640), in: directory["p"], shard: .whole).run(
                arguments: [CommandLine.arguments[0], "--testing-library", "swift-testing"] + [
                    "--filter", "CampaignTests/processes\\(",
                ]
            ) { simulation in
                let number = simulation.choice("number", of: Array(0..<50))
                simulation.sometimes("a number was even", if: number % 2 == 0)
                if number == 13 { fatalError("the number is \(number)") }
            }
        }
        let result = try run()
        #expect(result.schedules == 640 && result.findings.count == 1, "\(result)")
        let finding = try #require(result.findings.first)
        #expect(finding.fault.kind == .trap && finding.fault.description.hasSuffix("the number is 13"))
        #expect(finding.times > 2 && "\(finding.token)".hasSuffix(":number@0=13"))
        #expect(result.marks["a number was even"] > 100)
    }

    @Test("a program that does not come to its campaign is a failure")
    func lost() {
        #expect(throws: CampaignError.self) {
            try Campaign("lost", of: Exploration(schedules: 64), in: directory["l"], shard: .whole).run(
                arguments: [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "no such test"]
            ) { _ in }
        }
    }
}
