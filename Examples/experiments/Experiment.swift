import FoundationEssentials
import Scenarios

/// One experiment of the documents: the play, and the document's account of it.
struct Experiment: Sendable {
    let id: String
    let title: String
    let expected: [Expectation]
    let play: Play

    /// A line of the document.
    struct Expectation: Sendable, Decodable {
        /// The exact time, in seconds, on the grid of the document's figure.
        let t: Double
        let event: String
        /// The line that the document printed.
        let document: String

        var nanoseconds: Int64 { Int64((t * 1e9).rounded()) }
    }

    enum Play: Sendable {
        /// Data that can be copied and changed.
        case scenario(Scenario, json: [UInt8])
        /// A program, for threads and delayed calls, which a scenario cannot express; the picture has the lanes of the
        /// scenario that comes closest.
        case program(@Sendable (Testbed.Clock) -> [Observation], like: Scenario)
    }

    /// Plays the experiment once: the lines to compare, and the picture.
    func perform(on clock: Testbed.Clock) -> (observations: [Observation], picture: SVGChart) {
        switch play {
        case .program(let program, let scenario):
            let observations = program(clock)
            let events = observations.compactMap { line in line.mark.map { ScenarioEvent(t: line.t, $0) } }
            return (observations, SVGChart(scenario: scenario, events: events))
        case .scenario(let scenario, _):
            let events = ScenarioPlayer(scenario, clock: clock).play()
            return (FramesPerSecond(scenario).summing(events), SVGChart(scenario: scenario, events: events))
        }
    }

    // MARK: All of them

    static let all: [Experiment] = [
        scenario("X1", PackageResources.X1_json, PackageResources.X1_document_json),
        scenario("X2", PackageResources.X2_json, PackageResources.X2_document_json),
        scenario("X3", PackageResources.X3_json, PackageResources.X3_document_json),
        scenario("X4", PackageResources.X4_json, PackageResources.X4_document_json),
        scenario("X5", PackageResources.X5_json, PackageResources.X5_document_json),
        scenario("X6", PackageResources.X6_json, PackageResources.X6_document_json),
        Experiment("X7", PackageResources.X7_document_json, .program(secondaryThread, like: proxiedTimer)),
        scenario("X8", PackageResources.X8_json, PackageResources.X8_document_json),
        scenario("X9", PackageResources.X9_json, PackageResources.X9_document_json),
        scenario("X10", PackageResources.X10_json, PackageResources.X10_document_json),
        scenario("X11", PackageResources.X11_json, PackageResources.X11_document_json),
        scenario("X12", PackageResources.X12_json, PackageResources.X12_document_json),
        scenario("X13", PackageResources.X13_json, PackageResources.X13_document_json),
        scenario("X14", PackageResources.X14_json, PackageResources.X14_document_json),
        scenario("X15", PackageResources.X15_json, PackageResources.X15_document_json),
        Experiment("X16", PackageResources.X16_document_json, .program(cancelledCall, like: oneCall)),
    ]

    static func named(_ id: String) -> Experiment? {
        all.first { $0.id == id.uppercased() }
    }

    private static func scenario(_ id: String, _ json: [UInt8], _ document: [UInt8]) -> Experiment {
        do {
            return Experiment(id, document, .scenario(try Scenario(json: json), json: json))
        } catch {
            fatalError("the scenario of \(id) that was built in is malformed: \(error)")
        }
    }
}

extension Experiment {
    fileprivate init(_ id: String, _ document: [UInt8], _ play: Play) {
        struct Document: Decodable {
            let title: String
            let expected: [Expectation]
        }
        do {
            let document = try JSONDecoder().decode(Document.self, from: Data(document))
            self.id = id
            title = document.title
            expected = document.expected
            self.play = play
        } catch {
            fatalError("the document of \(id) that was built in is malformed: \(error)")
        }
    }
}
