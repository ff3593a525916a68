internal import CPrograms
internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopKit
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

/// A program of the system in a process of a simulated host.
///
/// The program runs in a process of the system, whose calls are requests here. Each of its threads has a slot in memory
/// that both processes share, and a thread of the simulation that serves the slot: it lets the program's thread run
/// until its next request, and does what that asks. So the order of the program's threads, their waits and their time
/// are those of any threads of the simulation.
///
/// Unchecked and not locked: used only by the thread whose turn it is.
final class SystemProgram: RunningProgram, @unchecked Sendable {
    unowned let process: Process
    private let path: String
    /// The path and the arguments.
    private(set) var commandLine: [String] = []
    private let page: UnsafeMutablePointer<rlk_program_page>
    /// The descriptor of the page's memory; `nil` once that has gone.
    private var memory: Int32?
    /// The number of the system's process; 0 once it has ended.
    private var system: pid_t = 0
    /// The slots of the threads that have not ended, each with the thread of the simulation that serves it; `nil` for
    /// the main thread of the process.
    private var servers: [Int32: LoopThread?] = [0: nil]
    /// The slots that were used by threads that have ended.
    private var freeSlots: [Int32] = []
    private var slotCount: Int32 = 1
    /// The number of threads ever begun, besides the main one.
    private var threadCount = 0
    /// The beginnings of lines that the program has written to its standard streams.
    private var unfinished: [(stream: StandardStream, line: [UInt8])] = []
    /// A number that distinguishes the program's addresses from those of others.
    private let space: UInt

    /// The number of programs started so far.
    private static let count = Locked<UInt>(0)

    /// Prepares a program; its process starts with ``run(_:)``.
    init(_ path: String, of process: Process, seededBy numbers: RunLoop.RandomNumbers) throws {
        (self.path, self.process) = (path, process)
        space = Self.count.withLock { count in
            count += 1
            // Above the addresses of a program.
            return (count & 0xffff) << 48
        }
        var memory: Int32 = -1
        guard let page = rlk_make_program(&memory) else { throw SystemError("make memory for \(path)", errno: errno) }
        (self.page, self.memory) = (page, memory)
        let seed = (numbers.next(), numbers.next(), numbers.next(), numbers.next() | 1)
        (Directories.parent(of: path) + "/").withCString { folder in
            var facts = rlk_program_facts(
                process: process.processIdentifier, parent: 1, user: process.user.identifier, group: process.user.group,
                host_name: process.machine.cName, folder: folder, seed: seed)
            rlk_set_facts(page, &facts)
        }
    }

    deinit {
        end()
        empty()
        rlk_free_program(page)
    }

    // MARK: Start and end

    /// Starts the program and serves its main thread. Does not return unless the program cannot be started.
    func run(_ arguments: [String]) throws {
        let library = try PreloadLibrary.find()
        commandLine = [path] + arguments
        // A program of Swift that has crashed would start another one, to describe the crash.
        let variables = ["SWIFT_BACKTRACE": "enable=no"].merging(process.variables.variables) { $1 }.merging(
            [
                "LD_PRELOAD": library, "LD_BIND_NOW": "1", "RUNLOOPKIT_PROGRAM": "1",
                // Without this, the kernel tells threads which processor they are on.
                "GLIBC_TUNABLES": "glibc.pthread.rseq=0",
            ]) { $1 }
        let lines = variables.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        let (arguments, environment) = (CStrings(commandLine), CStrings(lines))
        let status = withExtendedLifetime((arguments, environment)) {
            rlk_start_program(memory!, path, arguments.pointers, environment.pointers, &system)
        }
        guard status == 0 else { throw SystemError("start \(path)", errno: status) }
        serve(0)
    }

    /// Kills the process of the system, if it still runs.
    func end() {
        guard system != 0 else { return }
        for (stream, line) in unfinished where !line.isEmpty { line.withUnsafeBytes { _ = stream.write($0) } }
        unfinished = []
        _ = rlk_kill_program(system)
        system = 0
        empty()
    }

    /// Gives the page's memory back: a thread that was ended where it served a slot keeps this object for ever.
    private func empty() {
        if let memory = memory.take() { rlk_empty_program(page, memory) }
    }

    /// Ends the simulated process as the system's has ended by itself. Does not return.
    private func processHasEnded() {
        let status = rlk_kill_program(system)
        system = 0
        empty()
        let signal = status & 0x7f
        guard signal != 0 else { return process.end(with: status >> 8 & 0xff) }
        process.crashHandler?(Signal(rawValue: signal))
        process.end(by: Signal(rawValue: signal))
    }

    // MARK: Output

    /// Writes whole lines to a standard stream, each by itself.
    func printLines(of bytes: UnsafeRawBufferPointer, to stream: StandardStream) {
        let index = unfinished.firstIndex { $0.stream === stream } ?? unfinished.count
        if index == unfinished.count { unfinished.append((stream, [])) }
        unfinished[index].line += bytes
        while let end = unfinished[index].line.firstIndex(of: UInt8(ascii: "\n")) {
            unfinished[index].line[..<end].withUnsafeBytes { _ = stream.write($0) }
            unfinished[index].line.removeFirst(end + 1)
        }
    }

    // MARK: Serving a thread

    /// Serves a thread of the program until it ends.
    private func serve(_ slot: Int32) {
        var asked = rlk_asked()
        while system != 0 {
            switch rlk_run_program(page, slot, system, clocks, &asked) {
            case rlk_thread_asks:
                let request = Request(asked, slot)
                let result = answer(request)
                rlk_answer_program(page, slot, result, request.count, request.addressSize)
            case rlk_thread_has_ended:
                return threadHasEnded(slot)
            default:
                return processHasEnded()
            }
        }
    }

    private func threadHasEnded(_ slot: Int32) {
        servers[slot] = nil
        freeSlots.append(slot)
        if servers.isEmpty { return process.end(with: 0) }
        // The process lives on without its main thread.
        if slot == 0 { _ = rest(at: 0, bits: .max, until: nil) }
    }

    /// The calls that a simulation answers, made by its calling thread.
    private var calls: rlk_simulated_calls { rlk_installed_calls().pointee }

    private var clocks: [Int64] {
        let time = calls.time!
        return [rlk_clock_monotonic, rlk_clock_boot, rlk_clock_wall, rlk_clock_processor].map { time($0) }
    }

    /// Does what a thread asks for.
    ///
    /// - Returns: the result for the thread; below zero, an error number.
    private func answer(_ request: Request) -> Int64 {
        let (first, second, third, fourth) = request.arguments
        let bits = UInt32(truncatingIfNeeded: second)
        switch request.kind {
        case rlk_request_sleep: return sleep(until: second, of: rlk_clock(UInt32(first)))
        case rlk_request_wait:
            return rest(at: UInt(first), bits: bits, until: third < 0 ? nil : (rlk_clock(UInt32(third)), fourth))
        case rlk_request_signal:
            return Int64(calls.signal(address(UInt(first)), bits, Int32(clamping: third)))
        case rlk_request_rest:
            let rest = process.machine.network.simulation.restAfterSteps() ?? .zero
            return sleep(until: clocks[0] + rest.nanoseconds, of: rlk_clock_monotonic)
        case rlk_request_begin_thread: return beginThread()
        case rlk_request_end: process.end(with: Int32(first))
        case rlk_request_escape: request.text.withCString { calls.escape($0) }
        default: return answerDescriptor(request)
        }
        return 0
    }

    // MARK: Threads

    private func beginThread() -> Int64 {
        guard let slot = freeSlots.popLast() ?? (slotCount < rlk_most_threads ? slotCount : nil) else {
            return -Int64(EAGAIN)
        }
        slotCount = max(slotCount, slot + 1)
        threadCount += 1
        do {
            servers[slot] = try LoopThread(starting: "thread \(threadCount)", in: RunLoop.currentWorld) {
                [self] loop in
                serve(slot)
                loop.endAllRuns()
            }
        } catch { return -Int64(EAGAIN) }
        return Int64(slot)
    }

    // MARK: Rests

    /// Sleeps until a clock shows a time. Ends the program if its process or the simulation ends first.
    private func sleep(until time: Int64, of clock: rlk_clock) -> Int64 {
        if calls.sleep_at_most(clock, time) == 0 { end() }
        return 0
    }

    /// An address of the program, as one that no other has.
    private func address(_ address: UInt) -> UnsafeRawPointer { UnsafeRawPointer(bitPattern: space ^ address)! }

    /// Rests until the address is signalled.
    private func rest(at place: UInt, bits: UInt32, until limit: (clock: rlk_clock, time: Int64)?) -> Int64 {
        calls.begin_wait(address(place), bits)
        return rest(until: limit) ? 0 : -Int64(ETIMEDOUT)
    }

    /// Ends a wait that has begun.
    ///
    /// - Returns: `true` if the signal came.
    private func rest(until limit: (clock: rlk_clock, time: Int64)?) -> Bool {
        guard let limit else {
            calls.wait(rlk_awaits_program)
            return true
        }
        if calls.wait_until(limit.clock, limit.time) != 0 { return true }
        // The process or the simulation may have ended meanwhile.
        _ = sleep(until: 0, of: rlk_clock_monotonic)
        return false
    }

    /// Rests until a condition holds that depends on the readiness of some targets.
    ///
    /// - Parameter length: the longest rest in nanoseconds; below zero for no limit.
    func rest(_ slot: Int32, for length: Int64, at targets: [OpenDescription], until isMet: () -> Bool) {
        guard !isMet(), length != 0 else { return }
        let limit = length < 0 ? nil : (rlk_clock_monotonic, clocks[0] &+ length)
        // No word of the program is below the first page.
        let place = address(UInt(slot) + 1)
        let owner = Waiter()
        for target in targets {
            target.addObserver(owner) { _ = rlk_installed_calls().pointee.signal(place, .max, 1) }
        }
        defer { for target in targets { target.removeObserver(owner) } }
        while true {
            calls.begin_wait(place, .max)
            guard rest(until: limit), !isMet() else { return }
        }
    }

    private final class Waiter {}
}

/// A request of a program's thread.
final class Request {
    let kind: rlk_request
    let arguments: (Int64, Int64, Int64, Int64)
    /// The slot of the thread.
    let slot: Int32
    private let asked: rlk_asked
    /// The number of bytes of the request, and then of the answer.
    private(set) var count: Int
    private(set) var addressSize: Int

    init(_ asked: rlk_asked, _ slot: Int32) {
        (self.asked, self.slot) = (asked, slot)
        (kind, arguments) = (asked.request, asked.arguments)
        (count, addressSize) = (Int(asked.count), Int(asked.address_size))
    }

    /// The bytes of the request.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: asked.data, count: count) }
    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The memory for the bytes of the answer.
    func room(_ count: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: asked.data, count: min(max(0, count), rlk_most_bytes))
    }

    /// Sets the bytes of the answer.
    func set(_ bytes: UnsafeRawBufferPointer) {
        count = min(bytes.count, rlk_most_bytes)
        room(count).copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(count)))
    }

    /// The address of the request; `nil` if there is none.
    var address: Endpoint? {
        addressSize == 0
            ? nil : try? Endpoint(systemBytes: UnsafeRawBufferPointer(start: asked.address, count: addressSize))
    }

    /// Sets the address of the answer.
    func set(_ address: Endpoint) {
        address.withSystemBytes { bytes in
            addressSize = bytes.count
            UnsafeMutableRawBufferPointer(start: asked.address, count: 128).copyMemory(from: bytes)
        }
    }
}

/// The library that is loaded first in a program of the system.
private enum PreloadLibrary {
    /// Returns the library's path. A build puts it beside the program that uses it.
    static func find() throws -> String {
        #if arch(x86_64)
        var room = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &room, room.count - 1)
        let own = String(decoding: room.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let path = Directories.parent(of: own) + "/libRunLoopPreload.so"
        guard access(path, R_OK) == 0 else { throw MissingLibrary(path: path) }
        return path
        #else
        throw UnknownProcessor()
        #endif
    }

    private struct UnknownProcessor: Error, CustomStringConvertible {
        var description: String { "a simulation runs programs of the system on x86-64 only" }
    }

    private struct MissingLibrary: Error, CustomStringConvertible {
        let path: String

        var description: String {
            "there is no \(path): add the product RunLoopPreload to the dependencies of the test target"
        }
    }
}

/// Strings for C, in a list that a null pointer ends.
private final class CStrings {
    private(set) var pointers: [UnsafeMutablePointer<CChar>?]

    init(_ strings: [String]) {
        pointers = strings.map { strdup($0) } + [nil]
    }

    deinit {
        for pointer in pointers { free(pointer) }
    }
}
