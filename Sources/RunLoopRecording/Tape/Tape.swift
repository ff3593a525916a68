internal import CShims
@_spi(Ports) internal import RunLoopCore

/// The answers of the world to one thread. The base class asks the world; a ``RecordingTape`` also writes the answers
/// down, and a ``ReplayingTape`` reads them instead.
///
/// Used only on its thread. Each method takes a closure that asks the world.
class Tape {
    /// The number of the thread in the record.
    let number: UInt32

    init(number: UInt32) {
        self.number = number
    }

    /// The tape of the calling thread.
    static var current: Tape? {
        // Unmanaged: the thread has a pointer, and the world keeps the tape.
        get { rlk_get_thread_tape().map { Unmanaged<Tape>.fromOpaque($0).takeUnretainedValue() } }
        set { rlk_set_thread_tape(newValue.map { Unmanaged.passUnretained($0).toOpaque() }) }
    }

    // MARK: The driver

    func clock(_ ask: () -> RunLoop.Instant) -> RunLoop.Instant { ask() }

    /// - Parameter ask: waits, and adds descriptors to `ready`.
    func wait(until deadline: RunLoop.Instant, into ready: ReadyQueue, _ ask: () -> WaitOutcome) -> WaitOutcome {
        ask()
    }

    /// Notes that the loop watches a descriptor, or no longer does.
    func watched(_ token: SourceToken) {}
    func unwatched(_ token: SourceToken) {}

    // MARK: Mail

    /// See ``MailOrder``.
    func posted(isRefused: Bool) -> Bool { isRefused }
    func finds(_ isThere: Bool) -> Bool { isThere }
    func decides(_ decision: Bool) -> Bool { decision }
    func takes(_ waiting: [UInt32]) -> [UInt32] { waiting }

    // MARK: Calls

    /// Performs a call with any result.
    func call<Result>(
        _ kind: EventKind, _ arguments: [Argument], _ coding: Coding<Result>, _ ask: () -> Result
    ) -> Result {
        ask()
    }

    /// Performs a call that reads bytes, perhaps at a place of a file. The result is their number, or negative.
    func read(
        _ kind: EventKind, _ descriptor: Int32, at offset: Int?, into room: UnsafeMutableRawBufferPointer,
        _ ask: () -> Int
    ) -> Int {
        ask()
    }

    /// Performs a call that writes bytes. The result is their number, or negative.
    func write(
        _ kind: EventKind, _ descriptor: Int32, at offset: Int?, _ bytes: UnsafeRawBufferPointer, _ ask: () -> Int
    ) -> Int {
        ask()
    }

    /// Notes the end of the program on this thread.
    func end() {}
}

/// The coding of a result as bytes.
struct Coding<Value>: Sendable {
    let encode: @Sendable (Value, inout ByteEncoder) -> Void
    let decode: @Sendable (inout ByteDecoder) -> Value
}

extension Coding where Value == Int32 {
    static let int32 = Coding(encode: { $1.put(Int($0)) }, decode: { $0.int32() })
}

extension Coding where Value == Int {
    static let int = Coding(encode: { $1.put($0) }, decode: { $0.number() })
}

extension Coding where Value == Bool {
    static let bool = Coding(encode: { $1.put($0) }, decode: { $0.flag() })
}

extension Coding where Value == Void {
    static let none = Coding(encode: { _, _ in }, decode: { _ in })
}

extension Coding {
    static func optional<Wrapped>(_ coding: Coding<Wrapped>) -> Coding where Value == Wrapped? {
        Coding {
            $1.put($0 != nil)
            if let value = $0 { coding.encode(value, &$1) }
        } decode: {
            $0.flag() ? coding.decode(&$0) : nil
        }
    }

    static func list<Element>(_ coding: Coding<Element>) -> Coding where Value == [Element] {
        Coding { list, bytes in
            bytes.put(list.count)
            for element in list { coding.encode(element, &bytes) }
        } decode: { bytes in
            let count = bytes.number()
            var list: [Element] = []
            while list.count < count, bytes.isValid { list.append(coding.decode(&bytes)) }
            return list
        }
    }
}

extension Coding where Value == String {
    static let text = Coding(encode: { $1.put($0) }, decode: { $0.text() })
}

extension Coding where Value == [UInt8] {
    static let bytes = Coding(encode: { $1.put($0) }, decode: { $0.content() })

    /// The digest instead of the bytes, for a record that keeps none.
    static let digest = Coding { content, bytes in
        content.withUnsafeBytes { bytes.put(fixed: TapeCheck.digest($0)) }
    } decode: { bytes in
        _ = bytes.fixed()
        return []
    }
}
