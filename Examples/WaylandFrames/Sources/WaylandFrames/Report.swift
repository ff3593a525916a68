import RunLoopKit

/// The frames of the window, and the calls of its links.
struct Report: CustomStringConvertible {
    struct Frame: Equatable {
        var date: RunLoop.Instant
        var mode: RunLoop.Mode?
    }

    var frames: [Frame] = []
    var usualCalls: [Frame] = []
    var commonCalls: [Frame] = []

    /// The broken rules.
    var faults: [String] {
        var faults: [String] = []
        if commonCalls != frames { faults.append("the common link was not called once in each frame") }
        if usualCalls != frames.filter({ $0.mode == .default }) {
            faults.append("the default link was not called once in each frame of the default mode, and in no other")
        }
        if !zip(frames, frames.dropFirst()).allSatisfy({ $0.date < $1.date }) {
            faults.append("the dates of the frames do not rise")
        }
        return faults
    }

    var description: String {
        let modes: [(String, RunLoop.Mode)] = [("default mode ", .default), ("tracking mode", .tracking)]
        let lines = modes.map { name, mode in
            let counts = [frames, usualCalls, commonCalls].map { calls in calls.count { $0.mode == mode } }
            return name + zip(counts, [8, 14, 13]).map { padded("\($0)", to: $1) }.joined()
        }
        return (["               frames  default link  common link"] + lines).joined(separator: "\n")
    }

    private func padded(_ text: String, to width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
