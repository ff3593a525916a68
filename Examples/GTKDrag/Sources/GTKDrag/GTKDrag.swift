internal import ArgumentParser
internal import DragReport

@main
struct GTKDrag: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "A window with a timer that stops while you drag, and one that does not.",
        discussion: """
            While a button is pressed on the slider or the list, the loop runs in the tracking mode. The clock of the default \
            mode stops, and the clock of the common modes does not. Afterwards the first one fires once and is back on its \
            grid. With --drags, the program ends after as many drags, with a report, and with status 1 if a rule is broken.
            """)

    @Option(help: "After how many drags the program ends.")
    var drags: Int?

    @Option(help: "After how many frames the program ends, with the same report.")
    var frames: Int?

    @Option(help: "A directory for pictures of the window, during a drag and after the last one.")
    var pictures: String?

    func run() throws {
        let window = try DragWindow(drags: drags, frames: frames, pictures: pictures)
        window.run()
        guard drags != nil || frames != nil else { return }
        print(window.report)
        for fault in window.report.faults { print("BROKEN: \(fault)") }
        if !window.report.faults.isEmpty { throw ExitCode(1) }
    }
}
