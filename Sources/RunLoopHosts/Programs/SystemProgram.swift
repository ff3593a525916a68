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
    private unowned let own: Process
    /// The process that makes the present request: the program's own, or a child that has not run a program.
    private(set) unowned var process: Process
    /// The children that threads are about to let run programs, by the slots of these.
    var beginning: [Int32: Process] = [:]
    /// The children that become copies of the process.
    var forked: [Int32: Process] = [:]
    /// A program that has taken the place of this one.
    var successor: SystemProgram?
    let path: String
    /// The path and the arguments.
    private(set) var commandLine: [String] = []
    let page: UnsafeMutablePointer<rlk_program_page>
    /// The descriptor of the page's memory; `nil` once that has gone.
    private var memory: Int32?
    /// The number of the system's process; 0 once it has ended.
    private var system: pid_t = 0
    /// The slots of the threads that have not ended, each with the thread of the simulation that serves it; `nil` for
    /// the main thread of the process.
    private(set) var servers: [Int32: LoopThread?] = [0: nil]
    /// The slots that were used by threads that have ended.
    private var freeSlots: [Int32] = []
    private(set) var slotCount: Int32 = 1
    /// The number of threads ever begun, besides the main one.
    private var threadCount = 0
    /// The numbers of the present ones, by their slots.
    private(set) var numbers: [Int32: Int] = [:]
    /// The beginnings of lines that the program has written to its standard streams.
    private(set) var unfinished: [(stream: StandardStream, line: [UInt8])] = []
    /// The threads that wait at words of the program's memory, in the order in which they began.
    private var waits: [(slot: Int32, word: Int64, bits: UInt32)] = []
    struct Alarm {
        let next: Appointment
        let date: RunLoop.Instant
        let period: Duration
    }
    /// The next SIGALRM.
    var alarm: Alarm?
    /// The addresses at which the program has mapped files for all to see.
    var mappings: [(place: Range<UInt>, node: DiskNode)] = []

    /// Prepares a program; its process starts with ``run(_:)``.
    ///
    /// - Parameter former: the program that runs this one, with the slot of the thread that does.
    init(
        _ path: String, of process: Process, seededBy numbers: RunLoop.RandomNumbers,
        after former: (program: SystemProgram, slot: Int32)? = nil
    ) throws {
        (self.path, own, self.process) = (path, process, process)
        var memory: Int32 = -1
        guard let page = rlk_make_program(&memory) else { throw SystemError("make memory for \(path)", errno: errno) }
        (self.page, self.memory) = (page, memory)
        let seed = (numbers.next(), numbers.next(), numbers.next(), numbers.next() | 1)
        (Directories.parent(of: path) + "/").withCString { folder in
            var facts = rlk_program_facts(
                process: process.processIdentifier, parent: process.parentIdentifier, user: process.user.identifier,
                group: process.user.group, is_explored: process.machine.network.simulation.isExplored ? 1 : 0,
                host_name: process.machine.cName, folder: folder, seed: seed)
            rlk_set_facts(page, &facts)
            if let former { rlk_inherit(page, former.program.page, former.slot) }
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
        try launch([path] + arguments)
        openStandardInput()
        serve(0)
    }

    /// Starts the program.
    ///
    /// - Parameter commandLine: the name of the program, and the arguments.
    func launch(_ commandLine: [String]) throws {
        let library = try PreloadLibrary.find()
        self.commandLine = commandLine
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
    }

    /// Opens the file `/dev/stdin` of the host's disk, if there is one, as the standard input, which is at its end otherwise.
    private func openStandardInput() {
        let path = "/dev/stdin"
        guard process.machine.disk.exists(path, as: process.user) else { return }
        process.close(DescriptorTable.first)
        _ = process.open(path, flags: O_RDONLY)
    }

    /// Kills the process of the system, if it still runs.
    func end() {
        alarm?.next.callOff()
        alarm = nil
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
        process.failureHandler?(Crash(signal: Signal(rawValue: signal)))
        process.end(by: Signal(rawValue: signal))
    }

    /// Takes a process of the system that the program has made by `fork`, with a copy of another program's memory.
    func adopt(_ system: pid_t, from former: SystemProgram, _ slot: Int32) {
        (self.system, commandLine) = (system, former.commandLine)
        rlk_fork(page, former.page, slot)
    }

    /// The descriptor of the page's memory.
    var pageDescriptor: Int32 { memory ?? -1 }

    /// Puts another program in the place of this one, in its process.
    func giveWay(to next: SystemProgram) {
        next.unfinished = unfinished
        unfinished = []
        successor = next
        own.program = next
        end()
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
    func serve(_ slot: Int32) {
        var asked = rlk_asked()
        while system != 0 {
            switch rlk_run_program(page, slot, system, clocks, &asked) {
            case rlk_thread_asks:
                let request = Request(asked, slot)
                // A thread that waits at a word has looked at it, and no other may change it before the wait begins.
                // While a child begins, its state is in the place of the process's own.
                if servers.count > 1, beginning.isEmpty, request.kind != rlk_request_wait {
                    process.machine.network.simulation.giveWay()
                }
                process = beginning[slot] ?? own
                let result = answer(request)
                process = own
                if let successor { return successor.serve(0) }
                rlk_answer_program(page, slot, result, request.count, request.addressSize)
            case rlk_thread_has_ended:
                return threadHasEnded(slot, asked.arguments.0)
            default:
                return processHasEnded()
            }
        }
    }

    /// Ends a thread, for whose end others may wait at a word.
    private func threadHasEnded(_ slot: Int32, _ word: Int64) {
        _ = wake(at: word, .max, atMost: .max)
        servers[slot] = nil
        freeSlots.append(slot)
        if servers.isEmpty { return process.end(with: 0) }
        // The process lives on without its main thread.
        if slot == 0 { _ = rest(slot, until: nil) { false } }
    }

    /// The calls that a simulation answers, made by its calling thread.
    private var calls: rlk_simulated_calls { rlk_installed_calls().pointee }

    private var clocks: [Int64] {
        let time = calls.time!
        return [rlk_clock_monotonic, rlk_clock_boot, rlk_clock_wall, rlk_clock_processor].map { time($0) }
    }

    /// Answers a request of a thread.
    ///
    /// - Returns: the result for the thread; below zero, an error number.
    private func answer(_ request: Request) -> Int64 {
        let (first, second, third, fourth) = request.arguments
        let bits = UInt32(truncatingIfNeeded: second)
        switch request.kind {
        case rlk_request_sleep:
            let result = rest(request.slot, until: Limit(first, second)) { false }
            return result == -Int64(ETIMEDOUT) ? 0 : result
        case rlk_request_wait: return wait(request.slot, at: first, bits, until: Limit(third, fourth))
        case rlk_request_wake: return wake(at: first, bits, atMost: Int(third))
        case rlk_request_move: return move(from: first, to: second, ending: Int(third), atMost: Int(fourth))
        case rlk_request_rest:
            let length = process.machine.network.simulation.restAfterSteps() ?? .zero
            _ = rest(request.slot, until: Limit(rlk_clock_monotonic, clocks[0] + length.nanoseconds)) { false }
        case rlk_request_place: break
        case rlk_request_begin_thread: return beginThread()
        case rlk_request_end: process.end(with: Int32(first))
        case rlk_request_begin_fork, rlk_request_end_fork, rlk_request_begin_child, rlk_request_end_child,
            rlk_request_execute, rlk_request_await_child,
            rlk_request_set_group, rlk_request_group, rlk_request_open_process, rlk_request_signal_process:
            return answerChild(request)
        case rlk_request_end_by_signal, rlk_request_kill, rlk_request_interrupt, rlk_request_set_alarm,
            rlk_request_signals, rlk_request_change_signals:
            return answerSignal(request)
        case rlk_request_escape: request.text.withCString { calls.escape($0) }
        case rlk_request_mark: process.machine.network.simulation.sometimes(request.text)
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
        numbers[slot] = threadCount
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

    /// The time that a clock shows at the end of a rest.
    struct Limit {
        let clock: rlk_clock
        let time: Int64

        init(_ clock: rlk_clock, _ time: Int64) {
            (self.clock, self.time) = (clock, time)
        }

        /// The limit of a request; `nil` for a clock below zero.
        init?(_ clock: Int64, _ time: Int64) {
            guard clock >= 0 else { return nil }
            self.init(rlk_clock(UInt32(clock)), time)
        }
    }

    /// The place at which a thread rests.
    private func place(of slot: Int32) -> UnsafeRawPointer { rlk_place_of(page, slot) }

    /// Has a thread that rests look around.
    func wake(_ slot: Int32) { _ = calls.signal(place(of: slot), .max, 1) }

    /// Rests until a condition holds. It is looked at when the thread is woken.
    ///
    /// - Returns: 0, or a negative error number: `ETIMEDOUT`, or `EINTR` for a signal.
    private func rest(_ slot: Int32, until limit: Limit?, isMet: () -> Bool) -> Int64 {
        while !isMet() {
            guard rlk_has_signal(page, slot) == 0 else { return -Int64(EINTR) }
            calls.begin_wait(place(of: slot), .max)
            guard let limit else {
                calls.wait(rlk_awaits_program)
                continue
            }
            switch calls.wait_at_most(limit.clock, limit.time) {
            case rlk_wait_was_signalled: break
            case rlk_wait_limit_passed: return -Int64(ETIMEDOUT)
            default:
                end()
                return -Int64(ETIMEDOUT)
            }
        }
        return 0
    }

    /// Rests until a condition holds that depends on the readiness of some targets.
    ///
    /// - Parameter length: the longest rest in nanoseconds; below zero for no limit.
    /// - Returns: 0, or a negative error number, as above.
    func rest(_ slot: Int32, for length: Int64, at targets: [OpenDescription], until isMet: () -> Bool) -> Int64 {
        guard length != 0 else { return isMet() ? 0 : -Int64(ETIMEDOUT) }
        let owner = Waiter()
        for target in targets { target.addObserver(owner) { [unowned self] _ in wake(slot) } }
        defer { for target in targets { target.removeObserver(owner) } }
        let limit = length < 0 ? nil : Limit(rlk_clock_monotonic, clocks[0] &+ length)
        return rest(slot, until: limit, isMet: isMet)
    }

    /// Waits at a word of the program's memory.
    private func wait(_ slot: Int32, at word: Int64, _ bits: UInt32, until limit: Limit?) -> Int64 {
        waits.append((slot, word, bits))
        if limit == nil { findDeadlock(from: slot) }
        defer { waits.removeAll { $0.slot == slot } }
        return rest(slot, until: limit) { !waits.contains { $0.slot == slot } }
    }

    /// Ends the first waits at a word for one of the bits.
    ///
    /// - Returns: the number of these waits.
    private func wake(at word: Int64, _ bits: UInt32, atMost most: Int) -> Int64 {
        let ended = waits.filter { $0.word == word && $0.bits & bits != 0 }.prefix(most)
        waits.removeAll { wait in ended.contains { $0.slot == wait.slot } }
        for wait in ended { wake(wait.slot) }
        return Int64(ended.count)
    }

    /// Ends the first waits at a word, and has the next ones wait at another word.
    ///
    /// - Returns: the number of both.
    private func move(from word: Int64, to other: Int64, ending most: Int, atMost mostMoved: Int) -> Int64 {
        let ended = wake(at: word, .max, atMost: most)
        let moved = waits.filter { $0.word == word }.prefix(mostMoved)
        if word != other {
            waits.removeAll { wait in moved.contains { $0.slot == wait.slot } }
            waits += moved.map { ($0.slot, other, $0.bits) }
        }
        return ended + Int64(moved.count)
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

    /// The numbers of descriptors that a message passes on.
    var passedDescriptors: [Int32] {
        guard kind == rlk_request_write, asked.control.pointee.count > 0 else { return [] }
        return withUnsafeBytes(of: &asked.control.pointee.descriptors) {
            Array($0.bindMemory(to: Int32.self).prefix(Int(asked.control.pointee.count)))
        }
    }

    /// Sets the numbers of descriptors that a message has brought.
    ///
    /// - Parameter isCut: `true` if there were more.
    func set(descriptors: [Int32], isCut: Bool) {
        asked.control.pointee.count = UInt32(descriptors.count)
        asked.control.pointee.is_cut = isCut ? 1 : 0
        withUnsafeMutableBytes(of: &asked.control.pointee.descriptors) { room in
            descriptors.withUnsafeBytes { room.copyMemory(from: $0) }
        }
    }

    /// Sets the sender of the bytes of the answer.
    func setSender(_ sender: SimulatedSocket.Owner) {
        (asked.control.pointee.process, asked.control.pointee.user, asked.control.pointee.group) =
            (sender.process, sender.user, sender.group)
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
