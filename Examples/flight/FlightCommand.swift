import ArgumentParser
import Glibc
import RunLoopKit

@main
struct FlightCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "flight",
        abstract: "Shows what a loop did, from the file of its FlightRecorder.",
        discussion: """
            The file may be that of a process that runs, or of one that has ended in any way. Its handlers are listed by the \
            time that they took; calls that were under way at the end come first.
            """)

    @Argument(help: "Files of flights: several loops, or several processes, go into one timeline.")
    var files: [String]

    @Flag(help: "Prints every event, with its time and depth.")
    var events = false

    @Option(help: "Writes a timeline in the JSON of Chrome's tracing, for Perfetto.")
    var timeline: String?

    @Option(help: "Writes a page for a browser: a picture of each flight, its latest timers and its handlers.")
    var page: String?

    @Option(help: "Writes the picture of a flight alone, as SVG.")
    var svg: String?

    func validate() throws {
        if svg != nil, files.count != 1 { throw ValidationError("--svg draws one flight; --page takes several") }
    }

    func run() throws {
        let flights: [Flight]
        do {
            flights = try files.map { try Flight(contentsOf: $0) }
        } catch {
            throw ValidationError("\(error)")
        }
        if let timeline { try write(Flight.traceEvents(of: flights), to: timeline) }
        if let page { try write(FlightPage(flights: flights).html, to: page) }
        if let svg { try write(FlightChart(flights[0]).svg, to: svg) }
        guard timeline == nil, page == nil, svg == nil else { return }
        for flight in flights {
            guard events else {
                print(flight)
                continue
            }
            for entry in flight.entries { print(line(entry)) }
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

    private func line(_ entry: Flight.Entry) -> String {
        let indent = String(repeating: "  ", count: entry.depth)
        let text =
            switch entry.event {
            case .runBegan(let mode): "run in \(mode)"
            case .runEnded(let mode): "end of the run in \(mode)"
            case .callBegan(let handler, _): handler.map { "\($0)" } ?? "a handler without a name"
            case .callHas(let number, let thread):
                "is effect \(number)" + (thread.map { ", from the thread \"\($0)\"" } ?? "")
            case .callEnded(let duration): "ended after \(duration)"
            case .slept(let duration, let reason): "slept for \(duration), woken by \(reason)"
            case .caused(let handler, let number):
                "has effect \(number): \(handler.map { "\($0)" } ?? "a handler without a name")"
            case .moved(let connection, let descriptor, let received, let sent):
                "received \(received) bytes, sent \(sent): \(name(connection, descriptor))"
            }
        return "\(entry.time) \(indent)\(text)"
    }

    private func name(_ connection: Flight.Handler?, _ descriptor: Int32) -> String {
        "\(connection.map { "\($0)" } ?? "a connection without a name") on descriptor \(descriptor)"
    }
}
