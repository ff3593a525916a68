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
final class SystemProgram: @unchecked Sendable {
    private unowned let process: Process
    private let path: String
    private let page: UnsafeMutablePointer<rlk_program_page>
    private let memory: Int32
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
    /// A number that distinguishes the program's addresses from those of others.
    private let space: UInt

    /// The number of programs started so far.
    private static let count = Locked<UInt>(0)
    private static let mode = RunLoop.Mode("a program's sleep")

    /// Prepares a program; its process starts with ``run(_:on:)``.
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
        rlk_free_program(page, memory)
    }

    // MARK: Start and end

    /// Starts the program and serves its main thread. Does not return unless the program cannot be started.
    func run(_ arguments: [String], on loop: RunLoop) throws {
        let library = try PreloadLibrary.find()
        let variables = process.variables.variables.merging(
            [
                "LD_PRELOAD": library, "LD_BIND_NOW": "1", "RUNLOOPKIT_PROGRAM": "1",
                // Without this, the kernel tells threads which processor they are on.
                "GLIBC_TUNABLES": "glibc.pthread.rseq=0",
            ], uniquingKeysWith: { $1 })
        let lines = variables.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        let (arguments, environment) = (CStrings([path] + arguments), CStrings(lines))
        let status = rlk_start_program(memory, path, arguments.pointers, environment.pointers, &system)
        guard status == 0 else { throw SystemError("start \(path)", errno: status) }
        serve(0, on: loop)
    }

    /// Kills the process of the system, if it still runs.
    func end() {
        guard system != 0 else { return }
        _ = rlk_kill_program(system)
        system = 0
    }

    /// Ends the simulated process as the system's has ended by itself. Does not return.
    private func processHasEnded() {
        let status = rlk_kill_program(system)
        system = 0
        let signal = status & 0x7f
        guard signal != 0 else { return process.end(with: status >> 8 & 0xff) }
        process.crashHandler?(Signal(rawValue: signal))
        process.end(by: Signal(rawValue: signal))
    }

    // MARK: Serving a thread

    /// Serves a thread of the program until it ends.
    private func serve(_ slot: Int32, on loop: RunLoop) {
        let keeper = CustomSource()
        loop.add(keeper, forMode: RunLoop.Modes(Self.mode))
        defer { keeper.invalidate() }
        var asked = rlk_asked()
        while system != 0, !loop.isEnding {
            switch rlk_run_program(page, slot, system, clocks, &asked) {
            case rlk_thread_asks:
                rlk_answer_program(page, slot, answer(asked, on: loop))
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
    private func answer(_ asked: rlk_asked, on loop: RunLoop) -> Int64 {
        let (first, second, third, fourth) = asked.arguments
        let bits = UInt32(truncatingIfNeeded: second)
        switch asked.request {
        case rlk_request_sleep: return sleep(until: second, of: rlk_clock(UInt32(first)), on: loop)
        case rlk_request_wait:
            return rest(at: UInt(first), bits: bits, until: third < 0 ? nil : (rlk_clock(UInt32(third)), fourth))
        case rlk_request_signal:
            return Int64(calls.signal(address(UInt(first)), bits, Int32(clamping: third)))
        case rlk_request_rest:
            let rest = process.machine.network.simulation.restAfterSteps() ?? .zero
            return sleep(until: clocks[0] + rest.nanoseconds, of: rlk_clock_monotonic, on: loop)
        case rlk_request_begin_thread: return beginThread()
        case rlk_request_end:
            process.end(with: Int32(first))
        case rlk_request_escape:
            String(decoding: bytes(asked), as: UTF8.self).withCString { calls.escape($0) }
        case rlk_request_write:
            return result(process.write(descriptor(first), UnsafeRawBufferPointer(bytes(asked))))
        case rlk_request_read:
            return result(process.read(descriptor(first), into: UnsafeMutableRawBufferPointer(start: asked.data, count: Int(second))))
        case rlk_request_close:
            guard process.target(of: descriptor(first)) != nil else { return -Int64(EBADF) }
            process.close(descriptor(first))
        case rlk_request_adopt:
            let adopted = process.descriptors.add(OpenDescription())
            return adopted < 0 ? -Int64(errno) : Int64(adopted - DescriptorTable.first)
        default: return -Int64(ENOSYS)
        }
        return 0
    }

    private func bytes(_ asked: rlk_asked) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: asked.data, count: Int(asked.count))
    }

    private func descriptor(_ number: Int64) -> Int32 { DescriptorTable.first + Int32(truncatingIfNeeded: number) }

    private func result(_ count: Int) -> Int64 { count < 0 ? -Int64(errno) : Int64(count) }

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
                serve(slot, on: loop)
                loop.endAllRuns()
            }
        } catch { return -Int64(EAGAIN) }
        return Int64(slot)
    }

    // MARK: Rests

    /// Sleeps until a clock shows a time.
    private func sleep(until time: Int64, of clock: rlk_clock, on loop: RunLoop) -> Int64 {
        let present = calls.time(clock)
        let (length, isForever) = time.subtractingReportingOverflow(present)
        loop.run(in: Self.mode, until: isForever ? .distantFuture : loop.now + .nanoseconds(max(0, length)))
        return 0
    }

    /// An address of the program, as one that no other has.
    private func address(_ address: UInt) -> UnsafeRawPointer { UnsafeRawPointer(bitPattern: space ^ address)! }

    /// Rests until the address is signalled.
    private func rest(at place: UInt, bits: UInt32, until limit: (clock: rlk_clock, time: Int64)?) -> Int64 {
        calls.begin_wait(address(place), bits)
        guard let limit else {
            calls.wait(rlk_awaits_program)
            return 0
        }
        return calls.wait_until(limit.clock, limit.time) != 0 ? 0 : -Int64(ETIMEDOUT)
    }
}

/// The library that is loaded first in a program of the system.
private enum PreloadLibrary {
    /// Returns the library's path. A build puts it beside the program that uses it.
    static func find() throws -> String {
        var room = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &room, room.count - 1)
        let own = String(decoding: room.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let path = Directories.parent(of: own) + "/libRunLoopPreload.so"
        guard access(path, R_OK) == 0 else { throw MissingLibrary(path: path) }
        return path
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
