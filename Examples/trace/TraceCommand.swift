import ArgumentParser
import Glibc
import RunLoopExploration
import RunLoopKit
import RunLoopRecording

@main
struct TraceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "runloop-trace",
        abstract: "Shows what loops did: a flight, the record of a run, the trace of a simulation, or a finding.",
        discussion: """
            A flight and a record may be those of a process that runs, or of one that has ended in any way. Without options, \
            the command prints a report: the handlers of a flight by their time, the threads of a record, the picture of a \
            trace, the report of a finding.
            """)

    @Argument(help: "Files. Flights of several loops, or of several processes, go into one page or timeline.")
    var files: [String]

    @Flag(help: "Prints every event. Those of a record have the numbers that --until takes in a replay.")
    var events = false

    @Option(help: "The thread of a record whose events are printed; 0, the first one, unless given.")
    var thread: Int?

    @Flag(help: "Prints the clients of a recorded daemon: when they came, and how much they sent and received.")
    var clients = false

    @Option(help: "Writes a timeline in the JSON of Chrome's tracing, for Perfetto.")
    var timeline: String?

    @Option(help: "Writes a page for a browser.")
    var page: String?

    @Option(help: "Writes a picture as SVG.")
    var svg: String?

    func run() throws {
        let sources: [Source]
        do {
            sources = try files.map { try Source(contentsOf: $0) }
        } catch {
            throw ValidationError("\(error)")
        }
        if let timeline { try write(try Source.timeline(of: sources), to: timeline) }
        if let page { try write(try Source.page(of: sources), to: page) }
        if let svg {
            guard sources.count == 1 else {
                throw ValidationError("--svg draws one file; --page takes several flights")
            }
            try write(try sources[0].svg, to: svg)
        }
        guard timeline == nil, page == nil, svg == nil else { return }
        for source in sources {
            if clients { try source.printClients() }
            if events || thread != nil { try source.printEvents(ofThread: thread) }
            if !clients, !events, thread == nil { print(source) }
        }
    }

    private func write(_ text: String, to path: String) throws {
        guard let file = fopen(path, "w") else { throw ValidationError("\(path): \(String(cString: strerror(errno)))") }
        let isWritten = fputs(text, file) >= 0
        let reason = errno
        guard fclose(file) == 0, isWritten else {
            throw ValidationError("\(path): \(String(cString: strerror(reason)))")
        }
    }
}
