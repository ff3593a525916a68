import ArgumentParser

@main
struct Experiments: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "experiments",
        abstract: "Shows, mode by mode, when the timers of a run loop fire.",
        subcommands: [List.self, Run.self, Play.self, Explore.self, Debug.self, Compare.self])
}
