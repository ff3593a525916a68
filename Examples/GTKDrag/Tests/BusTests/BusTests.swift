import CGTK
import Glibc
import RunLoopGLib
import RunLoopKit
import Synchronization
import Testing

/// A client of the bus, and the words that its callbacks have seen. Used on the loop's thread.
private final class Client {
    let loop: RunLoop
    var words: [String] = []

    init(_ loop: RunLoop) {
        self.loop = loop
    }

    func saw(_ word: String) {
        words.append(word)
        if words.count == 3 { loop.stop() }
    }

    static func of(_ data: gpointer?) -> Client { Unmanaged<Client>.fromOpaque(data!).takeUnretainedValue() }
}

private let service = "org.freedesktop.DBus"

/// Calls a method on the bus, and notes the words of the answer.
private func call(_ connection: OpaquePointer, _ method: String, _ arguments: OpaquePointer?, for client: Client) {
    g_dbus_connection_call(
        connection, service, "/org/freedesktop/DBus", service, method, arguments, nil, G_DBUS_CALL_FLAGS_NONE, -1, nil,
        { connection, result, data in
            let connection = OpaquePointer(connection)
            guard let answer = g_dbus_connection_call_finish(connection, result, nil) else {
                return Client.of(data).saw("nothing")
            }
            defer { g_variant_unref(answer) }
            Client.of(data).saw(String(cString: g_variant_get_type_string(answer)))
        }, Unmanaged.passUnretained(client).toOpaque())
}

/// Runs a client of a bus, on a thread whose loop has a main context.
private func talk(to address: String, on loop: RunLoop) -> String {
    let context = g_main_context_new()
    defer { g_main_context_unref(context) }
    g_main_context_push_thread_default(context)
    defer { g_main_context_pop_thread_default(context) }
    guard let glib = try? GLibContext(context, on: loop) else { return "no context" }
    defer { glib.invalidate() }
    let flags = GDBusConnectionFlags(
        G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT.rawValue | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION.rawValue
    )
    guard let connection = g_dbus_connection_new_for_address_sync(address, flags, nil, nil, nil) else {
        return "no connection"
    }
    defer { g_object_unref(UnsafeMutableRawPointer(connection)) }
    let client = Client(loop)
    let signal = g_dbus_connection_signal_subscribe(
        connection, service, service, "NameOwnerChanged", "/org/freedesktop/DBus", "org.example.Drag",
        G_DBUS_SIGNAL_FLAGS_NONE,
        { _, _, _, _, _, _, data in Client.of(data).saw("changed") }, Unmanaged.passUnretained(client).toOpaque(), nil)
    defer { g_dbus_connection_signal_unsubscribe(connection, signal) }
    call(connection, "GetId", nil, for: client)
    let name: [OpaquePointer?] = [g_variant_new_string("org.example.Drag"), g_variant_new_uint32(0)]
    call(
        connection, "RequestName", name.withUnsafeBufferPointer { g_variant_new_tuple($0.baseAddress, 2) }, for: client)
    // The loop's own work, beside the bus.
    var fires = 0
    let timer = Timer(timeInterval: .microseconds(100), repeats: true) { _ in fires += 1 }
    loop.add(timer, forMode: .common)
    defer { timer.invalidate() }
    loop.run(in: .default, until: loop.now + .seconds(30))
    return client.words.sorted().joined(separator: " ") + (fires > 0 ? " beside timers" : "")
}

/// A session bus of the test's own.
private struct Bus {
    let address: String
    private let directory: String
    private let process: pid_t

    struct DidNotStart: Error {}

    init() throws {
        var template = Array("/tmp/runloopkit.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw DidNotStart() }
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        address = "unix:path=\(directory)/bus"
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // A process that waits for the end of the test's output does not wait for the bus.
        for descriptor in 0...2 as ClosedRange<Int32> {
            posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
        }
        let words = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--address=\(address)"]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        arguments.append(nil)
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        guard posix_spawnp(&process, "dbus-daemon", &actions, nil, arguments, environ) == 0 else { throw DidNotStart() }
        self.process = process
        for _ in 0..<1000 where access("\(directory)/bus", F_OK) != 0 { usleep(10_000) }
    }

    func end() {
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
        unlink("\(directory)/bus")
        rmdir(directory)
    }
}

@Suite("A client of D-Bus in a run loop")
struct BusTests {
    @Test("calls are answered and signals arrive, on a bus that the test starts")
    func session() throws {
        let bus = try Bus()
        defer { bus.end() }
        let address = bus.address
        let words = Mutex("")
        let thread = LoopThread(name: "bus") { loop in
            let seen = talk(to: address, on: loop)
            words.withLock { $0 = seen }
        }
        thread.join()
        #expect(words.withLock { $0 } == "(s) (u) changed beside timers")
    }
}
