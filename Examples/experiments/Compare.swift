import ArgumentParser

struct Compare: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows all kinds of timers side by side: alone, beside a busy loop, during a drag, and both.")

    @OptionGroup var clock: ClockOptions

    @Option(help: "How to print.")
    var format = OutputFormat.text

    @Option(help: "Draw the charts into this file.")
    var svg: String?

    func run() throws {
        let gallery = Gallery(on: clock.testbedClock)
        print(format == .text ? gallery.text : gallery.json)
        if let svg { try write(gallery.svg, into: svg) }
    }
}
