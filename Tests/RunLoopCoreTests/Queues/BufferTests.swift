import Testing

@testable import RunLoopCore

@Suite("Buffers")
struct BufferTests {
    @Test("Elements stay when their buffer gets pages of its own, grows and shrinks, and are released with it")
    func growsAndShrinks() {
        final class Element {
            let number: Int
            init(_ number: Int) { self.number = number }
        }
        weak var last: Element?
        do {
            var buffer = Buffer<Element>()
            for number in 0..<100_000 { buffer.append(Element(number)) }
            last = buffer.last
            #expect(buffer.indices.allSatisfy { buffer[$0].number == $0 })
            let largest = buffer.capacity
            for number in (500..<100_000).reversed() {
                let isRight = buffer.removeLast().number == number
                buffer.shrink()
                guard isRight, buffer.count == number else {
                    Issue.record("\(number) was lost")
                    return
                }
            }
            #expect(last == nil)
            #expect(buffer.capacity < largest / 32)
            #expect(buffer.indices.allSatisfy { buffer[$0].number == $0 })
            for number in 500..<5_000 { buffer.append(Element(number)) }
            #expect(buffer.indices.allSatisfy { buffer[$0].number == $0 })
            last = buffer[0]
        }
        #expect(last == nil)
    }

    @Test("Elements of which no whole number fills a page")
    func oddSizes() {
        typealias Three = (UInt64, UInt64, UInt64)
        var buffer = Buffer<Three>()
        for number in 0..<UInt64(50_000) { buffer.append((number, number + 1, number + 2)) }
        #expect(buffer.indices.allSatisfy { buffer[$0] == (UInt64($0), UInt64($0) + 1, UInt64($0) + 2) })
        while !buffer.isEmpty {
            _ = buffer.removeLast()
            buffer.shrink()
        }
        #expect(buffer.last == nil)
    }
}
