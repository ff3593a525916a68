import ArgumentParser

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the experiments.")

    @Argument(help: "Print this experiment's scenario, to be copied and changed.")
    var id: String?

    func run() throws {
        guard let id else {
            for experiment in Experiment.all {
                print(experiment.id.padding(to: 5) + experiment.title)
            }
            return
        }
        guard let experiment = Experiment.named(id) else { throw ValidationError("there is no experiment \(id)") }
        guard case .scenario(_, let json) = experiment.play else {
            throw ValidationError("\(id) is a program, not a scenario: a scenario has no threads and no delayed calls")
        }
        print(String(decoding: json, as: UTF8.self), terminator: "")
    }
}
