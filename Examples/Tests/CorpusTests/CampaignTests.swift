import ExampleTestSupport
import RunLoopKit
import RunLoopUnix
import Testing

/// Starts the program `Corpus`.
private func start(_ arguments: [String], _ variables: [String: String?] = [:]) throws -> ChildProcess {
    try ChildProcess.spawn(
        .path(pathOfProgram("Corpus")), arguments: arguments, environment: .updating(variables),
        standardOutput: .pipe, standardError: .null)
}

/// Returns the lines of a program's output, which is short enough to wait in the pipe, and its end.
private nonisolated(nonsending) func end(of child: ChildProcess) async throws -> ([Substring], ChildProcess.ExitStatus)
{
    let status = try await child.exit()
    var output: [UInt8] = []
    while case .bytes(let bytes) = try child.standardOutput!.read() { output += bytes }
    return (String(decoding: output, as: UTF8.self).split(separator: "\n"), status)
}

@Suite("A campaign of ten processes")
struct CampaignTests {
    @Test("ten shards of an indexed job have one result: its findings, its marks, and all its schedules")
    func shards() async throws {
        let directory = TemporaryDirectory()
        // Half of the shards share a directory.
        let places = (0..<10).map { directory[$0 < 5 ? "shared" : "own \($0)"] }
        let title = "acknowledged-too-early:"
        try await withLoop { _ in
            let campaign = ["campaign", "acknowledged-too-early", "--schedules", "1600", "--require", "a host crashed"]
            let shards = try places.enumerated().map { index, place in
                let variables = ["JOB_COMPLETION_INDEX": "\(index)", "RUNLOOP_SHARDS": "10"]
                return try start(campaign + ["--in", place], variables)
            }
            for shard in shards {
                let (lines, _) = try await end(of: shard)
                #expect(lines.first?.hasPrefix("\(title) 160 schedules with seed 0 in ") == true, "\(lines)")
            }
            let (lines, status) = try await end(of: start(["merge"] + [places[0]] + places[5...]))
            #expect(lines.first?.hasPrefix("\(title) 1,600 schedules with seed 0 in ") == true, "\(lines)")
            #expect(lines.first?.hasSuffix(", 10 of 10 shards") == true && status == .exited(1), "\(lines)")
            #expect(lines.contains { $0.hasPrefix("failed ") } && lines.contains("1600 a host crashed"), "\(lines)")
            #expect(!lines.contains { $0.hasPrefix("never met") })
        }
    }
}
