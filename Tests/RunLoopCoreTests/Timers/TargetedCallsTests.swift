import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

private final class Target {
    func call() {}
    func call(with argument: Counted) {}
}

/// An argument that counts its comparisons.
private struct Counted: Hashable {
    let number: Int
    let comparisons: Counter

    static func == (left: Counted, right: Counted) -> Bool {
        left.comparisons.add()
        return left.number == right.number
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(number)
    }
}

@Suite("Delayed calls that are found by their target")
struct TargetedCallsTests {
    @Test("one of 3,000 calls of a target is found without comparing it with the others")
    func comparisons() {
        withSimulation { simulation in
            let (loop, target, comparisons) = (simulation.loop, Target(), Counter())
            func argument(_ number: Int) -> Counted { Counted(number: number, comparisons: comparisons) }
            let calls = (0..<3000).map { number in
                loop.perform(
                    Target.call(with:), target: target, with: argument(number), named: "call", afterDelay: .seconds(1))
            }
            for number in stride(from: 0, to: 3000, by: 3) {
                loop.cancelPreviousPerformRequests(withTarget: target, named: "call", argument: argument(number))
            }
            #expect(comparisons.value == 1000)
            #expect(calls.indices.allSatisfy { calls[$0].isPending == !$0.isMultiple(of: 3) })
        }
    }

    @Test("equal calls are cancelled together, and arguments with equal hashes are distinguished")
    func collisions() {
        struct Colliding: Hashable {
            let number: Int
            func hash(into hasher: inout Hasher) {}
        }
        let calls = TargetedCalls()
        let (target, other) = (Target(), Target())
        func token(_ number: UInt32) -> CallToken { CallToken(slot: number, version: number) }
        for number in 0..<12 {
            calls.add(token(UInt32(number)), of: target, named: "call", Colliding(number: number % 3))
        }
        calls.add(token(12), of: other, named: "call", Colliding(number: 1))
        #expect(calls.calls(of: target, named: "call", Colliding(number: 1)).map(\.slot) == [1, 4, 7, 10])
        #expect(calls.calls(of: other, named: "call", Colliding(number: 1)).map(\.slot) == [12])
        #expect(calls.calls(of: target, named: "other", Colliding(number: 1)).isEmpty)
        #expect(calls.calls(of: target, named: "call", nil).isEmpty)
        #expect(calls.calls(of: target).map(\.slot) == Array(0..<12))
    }

    @Test("random operations agree with an array that is searched", arguments: 1...12 as ClosedRange<UInt64>)
    func randomOperations(seed: UInt64) {
        struct Call: Equatable {
            let token: CallToken
            let target: Int
            let name: String?
            let argument: Int?
        }
        var generator = SeededGenerator(seed: seed)
        let targets = (0..<4).map { _ in Target() }
        let calls = TargetedCalls()
        var model: [Call] = []
        func number(_ count: Int) -> Int { Int(generator.next() % UInt64(count)) }
        for step in 0..<3000 {
            if number(10) < (step % 1000 < 500 ? 7 : 3) {
                let call = Call(
                    token: CallToken(slot: UInt32(number(100)), version: UInt32(step)), target: number(4),
                    name: [nil, "skip", "play"][number(3)], argument: [nil, 1, 2][number(3)])
                calls.add(call.token, of: targets[call.target], named: call.name, call.argument)
                model.append(call)
            } else if let call = model.randomElement(using: &generator) {
                calls.remove(call.token)
                model.removeAll { $0 == call }
            }
            // Not there, and so harmless.
            calls.remove(CallToken(slot: 0, version: UInt32(step + 3000)))
            let (target, argument) = (number(4), [nil, 1, 2][number(3)])
            let all = model.filter { $0.target == target }
            let named = all.filter { $0.name == "play" && $0.argument == argument }
            guard calls.calls(of: targets[target]) == all.map(\.token),
                calls.calls(of: targets[target], named: "play", argument) == named.map(\.token)
            else {
                Issue.record("seed \(seed), step \(step): other calls were found than are there")
                return
            }
        }
    }

    @Test("an argument's deinit finds the loop in a consistent state")
    func argumentGoes() {
        final class Argument: Hashable {
            let body: () -> Void
            init(_ body: @escaping () -> Void) { self.body = body }
            deinit { body() }
            static func == (left: Argument, right: Argument) -> Bool { left === right }
            func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
        }
        final class Owner {
            func take(_ argument: Argument) {}
        }
        withSimulation { simulation in
            let (loop, owner, log) = (simulation.loop, Owner(), Log<String>())
            for number in 0..<3 {
                let argument = Argument {
                    log("\(number)")
                    loop.cancelPreviousPerformRequests(withTarget: owner)
                    loop.checkInvariants()
                }
                loop.perform(Owner.take, target: owner, with: argument, afterDelay: .seconds(1))
            }
            loop.cancelPreviousPerformRequests(withTarget: owner)
            #expect(log.entries.sorted() == ["0", "1", "2"])
            #expect(loop.isEmpty(.default))
        }
    }
}
