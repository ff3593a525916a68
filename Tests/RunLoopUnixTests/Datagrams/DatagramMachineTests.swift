import Glibc
import RunLoopKit
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

/// The machine and the queue of a datagram socket without a system, compared with lists.
@Suite("The machine of a datagram socket")
struct DatagramMachineTests {
    private struct Model {
        let most: Int
        let isForTasks: Bool
        var waiting: [Int] = []
        var pauses = 0
        var isAwaited = false
        var isBlocked = false
        var isPausing = false
        var isFull = false

        var total: Int { waiting.reduce(0, +) }

        var interest: DescriptorEvents {
            var events: DescriptorEvents = []
            if pauses == 0 && (isAwaited || !isForTasks) { events.insert(.readable) }
            if isBlocked && !isPausing { events.insert(.writable) }
            return events
        }
    }

    @Test("random events are answered as a naive model answers them", arguments: 0..<100)
    func model(round: UInt64) {
        let seed = UInt64.random(in: 0...UInt64(UInt32.max)) << 8 | round
        var random = SeededGenerator(seed: seed)
        var model = Model(most: Int.random(in: 0...1_000, using: &random), isForTasks: Bool.random(using: &random))
        var machine = DatagramMachine(mostWaiting: model.most, isForTasks: model.isForTasks)
        for _ in 0..<300 {
            switch Int.random(in: 0..<8, using: &random) {
            case 0...1:
                let count = Int.random(in: 0...300, using: &random)
                let isAdmitted = model.total == 0 || model.total + count <= model.most
                if isAdmitted { model.waiting.append(count) } else { model.isFull = true }
                #expect(machine.admits(count) == isAdmitted, "seed \(seed)")
            case 2 where !model.waiting.isEmpty: machine.left(model.waiting.removeFirst())
            case 3:
                let drains = model.isFull && model.total <= model.most / 2
                if drains { model.isFull = false }
                #expect(machine.drains() == drains, "seed \(seed)")
            case 4:
                model.isPausing = Bool.random(using: &random)
                model.isBlocked = true
                machine.block(reportsEnd: !model.isPausing)
            case 5:
                (model.isBlocked, model.isPausing) = (false, false)
                machine.unblock()
            case 6 where Bool.random(using: &random):
                model.pauses += 1
                machine.pause()
            case 6:
                #expect(machine.resume() == (model.pauses > 0), "seed \(seed)")
                model.pauses = max(0, model.pauses - 1)
            case 7 where model.isForTasks:
                model.isAwaited.toggle()
                machine.setAwaited(model.isAwaited)
            default: break
            }
            #expect(machine.interest == model.interest && machine.waiting == model.total, "seed \(seed)")
            #expect(machine.isIdle == (model.total == 0 && !model.isBlocked), "seed \(seed)")
        }
        machine.close()
        #expect(machine.interest == [] && !machine.isIdle && !machine.wantsInput && !machine.drains(), "seed \(seed)")
    }

    @Test("the queue returns its datagrams in their order, in batches of any size", arguments: 0..<20)
    func queue(round: UInt64) throws {
        let seed = UInt64.random(in: 0...UInt64(UInt32.max)) << 8 | round
        var random = SeededGenerator(seed: seed)
        var queue = DatagramQueue(BufferPool())
        var model: [(bytes: [UInt8], route: DatagramRoute)] = []
        let addresses = [
            nil, try Endpoint("127.0.0.1", port: 1), try Endpoint("::1", port: 2), try Endpoint(path: "/tmp/path"),
        ]
        let slots = UnsafeMutableBufferPointer<DatagramSlot>.allocate(capacity: 16)
        slots.initialize(repeating: DatagramSlot())
        defer { slots.deallocate() }
        for _ in 0..<500 {
            if Bool.random(using: &random) {
                let bytes = randomBytes(Int.random(in: 0..<3_000, using: &random), using: &random)
                let route = DatagramRoute(
                    to: addresses.randomElement(using: &random)!, from: addresses.randomElement(using: &random)!,
                    typeOfService: [nil, 0, 255].randomElement(using: &random)!)
                bytes.withUnsafeBytes { queue.append($0, on: route) }
                model.append((bytes, route))
            } else {
                let most = Int.random(in: 1...16, using: &random)
                let count = queue.fill(UnsafeMutableBufferPointer(rebasing: slots.prefix(most)))
                #expect(count == min(most, model.count), "seed \(seed)")
                for (slot, (bytes, route)) in zip(slots.prefix(count), model) {
                    #expect(Array(slot.bytes) == bytes && slot.address == route.peer, "seed \(seed)")
                    #expect(
                        slot.localAddress == route.source && slot.typeOfService == route.typeOfService, "seed \(seed)")
                }
                let removed = Int.random(in: 0...count, using: &random)
                let size = model.prefix(removed).reduce(0) { total, datagram in
                    total + datagram.bytes.withUnsafeBytes { DatagramQueue.size(of: $0, on: datagram.route) }
                }
                #expect(queue.removeFirst(removed) == size, "seed \(seed)")
                model.removeFirst(removed)
            }
            #expect(queue.isEmpty == model.isEmpty, "seed \(seed)")
        }
    }
}
