import RunLoopKit
import TestSupport
import Testing

@Suite("Scopes of tasks and a model")
struct ScopeModelTests {
    /// A seed has a hundred trees.
    @Test(
        "in random trees of scopes each piece ends as, when, and in the order that the model says",
        arguments: seeds(usually: 8))
    func model(seed: UInt64) {
        for number in UInt64(0)..<100 {
            var trees = ScopeTrees(seed: seed * 100 + number)
            let tree = trees.tree()
            let date = Bool.random(using: &trees.generator) ? seconds(0) + trees.duration() * 3 : .distantFuture
            let expected = ScopeModel.ends(of: tree, cancelledAt: date)
            let (ends, isDone) = ScopeProgram.ends(of: tree, cancelledAt: date)
            guard ends != expected || !isDone else { continue }
            Issue.record(
                """
                seed \(seed), number \(number), cancelled at \(date): \(tree)
                is \(ends), done: \(isDone)
                not \(expected)
                """)
            return
        }
    }
}
