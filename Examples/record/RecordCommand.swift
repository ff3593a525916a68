import ArgumentParser
import RunLoopRecording

@main
struct RecordCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record",
        abstract: "Shows the record of a run: its threads, the events of one, or the clients of a daemon.",
        discussion: """
            The record may be that of a process that runs, or of one that has ended in any way. An event is its number, the time \
            that the thread had read last, and what it asked for. The numbers are those that --until takes in a replay.
            """)

    @Argument(help: "The file of the record.")
    var file: String

    @Option(help: "Prints the events of the thread with that number.")
    var events: Int?

    @Flag(help: "Prints the clients of the daemon: when they came, and how much they sent and received.")
    var clients = false

    func run() throws {
        let record: Record
        do {
            record = try Record(contentsOf: file)
        } catch {
            throw ValidationError("\(error)")
        }
        if let events {
            guard record.threads[events] != nil else { throw ValidationError("the record has no thread \(events)") }
            for event in record.events(ofThread: events) { print(event) }
        }
        if clients {
            for client in record.clients {
                let sent = client.steps.reduce(0) { sum, step in
                    if case .send(let bytes) = step.action { sum + bytes.count } else { sum }
                }
                print("\(client.begin) \(client.peer) sent \(sent) bytes, received \(client.answerCount)")
            }
        }
        if events == nil, !clients { print(record, terminator: "") }
    }
}
