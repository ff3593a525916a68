import Glibc
import Logging
import RunLoopUnix

/// Accepts hooks by HTTP, and delivers them: `Webhooks SETTINGS LOG ADDRESS PORT`.
@main
enum Webhooks {
    static func main() {
        // Logging never waits for a reader.
        let logger = Logger(label: "webhooks", factory: { StreamLogHandler(label: $0, stream: StandardError.shared) })
        let words = CommandLine.arguments
        let status: Int32
        do {
            guard words.count == 5, let port = UInt16(words[4]) else {
                throw Settings.Invalid(description: "usage: Webhooks SETTINGS LOG ADDRESS PORT")
            }
            status = try Service(settings: words[1], log: words[2], logger).run(at: words[3], port: port)
        } catch {
            logger.critical("\(error)")
            status = error is Settings.Invalid ? 78 : 71
        }
        StandardError.shared.flush(within: .seconds(1))
        exit(status)
    }
}
