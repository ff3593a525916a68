import CShims
import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopRecording

/// A file for the record of a test, removed at the end.
final class RecordPath: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/rlk-record-XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        close(descriptor)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        unlink(path)
        var part = 2
        while unlink("\(path).\(part)") == 0 { part += 1 }
    }

    /// Returns one of the file's numbers.
    func word(at place: Int) -> UInt64 {
        bytes[place..<place + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    func set(_ word: UInt64, at place: Int) {
        var changed = bytes
        for index in 0..<8 { changed[place + index] = UInt8(truncatingIfNeeded: word >> UInt64(8 * index)) }
        bytes = changed
    }

    /// The bytes of the file.
    var bytes: [UInt8] {
        get {
            let file = fopen(path, "r")!
            defer { fclose(file) }
            var bytes: [UInt8] = []
            var part = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = fread(&part, 1, part.count, file)
                bytes += part[..<count]
                if count < part.count { return bytes }
            }
        }
        set {
            unlink(path)
            let file = fopen(path, "w")!
            fwrite(newValue, 1, newValue.count, file)
            fclose(file)
        }
    }
}

/// A program in which a timer fires `times` times, and draws numbers.
func tick(_ loop: RunLoop, times: Int, _ also: @escaping (Int) -> Void = { _ in }) -> [String] {
    var log: [String] = []
    loop.add(
        Timer(timeInterval: .microseconds(100), repeats: true) { _ in
            log.append("\(loop.now): \(loop.randomNumbers.next() as UInt64)")
            also(log.count)
            if log.count == times { loop.stop() }
        }, forMode: .default)
    loop.run(in: .default)
    return log
}

/// The end of a replay.
enum Outcome<Value: Sendable>: Sendable {
    case returned(Value)
    case diverged(Divergence)
    case ended(ReplayEnd)
    case failed(any Error)

    var value: Value? { if case .returned(let value) = self { value } else { nil } }
    var divergence: Divergence? { if case .diverged(let divergence) = self { divergence } else { nil } }
    var end: ReplayEnd? { if case .ended(let end) = self { end } else { nil } }
}

private final class Box {
    let run: () -> Void

    init(_ run: @escaping () -> Void) {
        self.run = run
    }
}

private final class Run<Value: Sendable>: Sendable {
    let outcome = Locked<Outcome<Value>?>(nil)
    let isOver = Handoff()
    let path: String
    let until: ReplayOptions.Position?
    let body: @Sendable (RunLoop) throws -> Value

    init(_ path: String, _ until: ReplayOptions.Position?, _ body: @escaping @Sendable (RunLoop) throws -> Value) {
        (self.path, self.until, self.body) = (path, until, body)
    }

    func finish(_ outcome: Outcome<Value>) {
        self.outcome.withLock { $0 = $0 ?? outcome }
        isOver.signal()
    }

    func run() {
        var options = ReplayOptions()
        options.until = until
        options.onDivergence = { [self] in
            finish(.diverged($0))
            rlk_end_thread()
        }
        options.onEnd = { [self] in
            finish(.ended($0))
            rlk_end_thread()
        }
        do { finish(.returned(try withReplay(of: path, options: options, body))) } catch { finish(.failed(error)) }
    }
}

/// Replays a record on a thread of its own, which is abandoned where the replay ends early.
func replay<Value: Sendable>(
    _ record: RecordPath, until: ReplayOptions.Position? = nil, _ body: @escaping @Sendable (RunLoop) throws -> Value
) -> Outcome<Value> {
    let run = Run(record.path, until, body)
    var thread = pthread_t()
    rlk_start_thread(
        &thread,
        { context in
            Unmanaged<Box>.fromOpaque(context!).takeRetainedValue().run()
            return nil
        }, Unmanaged.passRetained(Box { run.run() }).toOpaque())
    pthread_detach(thread)
    run.isOver.wait()
    return run.outcome.withLock { $0! }
}
