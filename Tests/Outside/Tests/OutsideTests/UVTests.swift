import CLibuv
import Glibc
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import RunLoopUnix
import Testing
import UVItem

@Suite("A loop of libuv", .timeLimit(.minutes(5)))
struct UVTests {
    /// Runs `body` with a loop of libuv that is an item of a run loop.
    private func withUV(on loop: RunLoop, _ body: (UnsafeMutablePointer<uv_loop_t>) throws -> Void) throws {
        let uv = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
        defer { uv.deallocate() }
        uv_loop_init(uv)
        let item = try UVItem(uv, on: loop, inModes: .default)
        try body(uv)
        // A closed handle is forgotten once its loop has run again.
        uv_walk(uv, { handle, _ in if uv_is_closing(handle) == 0 { uv_close(handle) { $0!.deallocate() } } }, nil)
        while uv_loop_alive(uv) != 0 { loop.run(in: .default, until: loop.now + .milliseconds(1)) }
        item.invalidate()
        #expect(uv_loop_close(uv) == 0)
    }

    /// A timer of libuv, which calls a closure as long as this object lives.
    private final class Ticker {
        private let body: () -> Void

        init(_ uv: UnsafeMutablePointer<uv_loop_t>, after: UInt64, every: UInt64, _ body: @escaping () -> Void) {
            self.body = body
            let handle = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
            uv_timer_init(uv, handle)
            handle.pointee.data = Unmanaged.passUnretained(self).toOpaque()
            uv_timer_start(
                handle, { Unmanaged<Ticker>.fromOpaque($0!.pointee.data).takeUnretainedValue().body() }, after, every)
        }
    }

    @Test("a timer of libuv fires in its mode, is never early, and rests in another mode")
    func timer() throws {
        let loop = RunLoop.current
        try withUV(on: loop) { uv in
            let start = loop.now
            var count = 0
            let ticker = Ticker(uv, after: 3, every: 3) {
                count += 1
                if count % 5 == 0 { loop.stop() }
            }
            defer { withExtendedLifetime(ticker) {} }
            loop.run(in: .default)
            // libuv's clock has whole milliseconds.
            #expect(count == 5 && loop.now - start > .milliseconds(14))
            let idle = CustomSource { _ in }
            loop.add(idle, forMode: .tracking)
            let passes = loop.statistics.passes
            loop.run(in: .tracking, until: loop.now + .milliseconds(20))
            #expect(count == 5 && loop.statistics.passes - passes < 5)
            idle.invalidate()
            loop.run(in: .default)
            #expect(count == 10)
        }
    }

    @Test("a loop of libuv that waits for nothing causes no passes")
    func quiet() throws {
        let loop = RunLoop.current
        try withUV(on: loop) { uv in
            let passes = loop.statistics.passes
            loop.run(in: .default, until: loop.now + .milliseconds(20))
            #expect(loop.statistics.passes - passes < 5)
        }
    }

    @Test("a callback of libuv may run the run loop, in which libuv rests")
    func nested() throws {
        let loop = RunLoop.current
        try withUV(on: loop) { uv in
            var count = 0
            var calls = 0
            let inner = Ticker(uv, after: 1, every: 1) { count += 1 }
            let outer = Ticker(uv, after: 5, every: 0) {
                let before = count
                loop.perform(afterDelay: .milliseconds(5)) { calls += 1 }
                let passes = loop.statistics.passes
                loop.run(in: .default, until: loop.now + .milliseconds(10))
                #expect(count == before && loop.statistics.passes - passes < 10)
                loop.stop()
            }
            defer { withExtendedLifetime((inner, outer)) {} }
            loop.run(in: .default)
            #expect(calls == 1)
            let before = count
            loop.run(in: .default, until: loop.now + .milliseconds(10))
            #expect(count > before)
        }
    }

    @Test("a server of libuv answers a connection of the run loop in its mode, and rests in another one")
    func echo() throws {
        let loop = RunLoop.current
        try withUV(on: loop) { uv in
            let server = EchoServer(uv)
            defer { withExtendedLifetime(server) {} }
            var text = ""
            let client = Connection(adopting: server.connect(), on: loop, inModes: .common) { connection, bytes in
                text += bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
                loop.stop()
                return bytes.count
            }
            try client.start()
            client.write("one")
            loop.run(in: .default)
            #expect(text == "one")
            client.write(" two")
            loop.run(in: .tracking, until: loop.now + .milliseconds(20))
            #expect(text == "one")
            loop.run(in: .default)
            #expect(text == "one two")
            client.close()
        }
    }

    @Test("in a simulation that answers calls for the time, libuv's timers are on virtual time")
    func virtualTime() throws {
        try withSimulation { simulation in
            simulation.captureExecutors()
            try withUV(on: simulation.loop) { uv in
                var dates: [RunLoop.Instant] = []
                let ticker = Ticker(uv, after: 3_600_000, every: 1000) { dates.append(simulation.now) }
                defer { withExtendedLifetime(ticker) {} }
                let start = simulation.now
                simulation.advance(by: .seconds(3602))
                #expect(dates.map { $0 - start } == [3600, 3601, 3602].map { Duration.seconds($0) })
            }
        }
    }
}

/// A server of libuv that sends received bytes back.
private final class EchoServer {
    private let handle = UnsafeMutablePointer<uv_tcp_t>.allocate(capacity: 1)

    init(_ uv: UnsafeMutablePointer<uv_loop_t>) {
        uv_tcp_init(uv, handle)
        var address = sockaddr_in()
        uv_ip4_addr("127.0.0.1", 0, &address)
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = uv_tcp_bind(handle, $0, 0) }
        }
        uv_listen(Self.stream(handle), 8) { server, _ in
            let peer = UnsafeMutablePointer<uv_tcp_t>.allocate(capacity: 1)
            uv_tcp_init(server!.pointee.loop, peer)
            uv_accept(server, EchoServer.stream(peer))
            uv_read_start(
                EchoServer.stream(peer),
                { _, size, buffer in buffer!.pointee = uv_buf_init(.allocate(capacity: size), UInt32(size)) },
                { peer, count, buffer in
                    defer { buffer!.pointee.base?.deallocate() }
                    // The end of the peer. The handle is closed at the end of the test.
                    guard count > 0 else { return }
                    var bytes = uv_buf_init(buffer!.pointee.base, UInt32(count))
                    #expect(uv_try_write(peer, &bytes, 1) == count)
                })
        }
    }

    private static func stream(_ handle: UnsafeMutablePointer<uv_tcp_t>) -> UnsafeMutablePointer<uv_stream_t> {
        UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_stream_t.self)
    }

    /// Returns a socket that is connected to the server.
    func connect() -> Int32 {
        var address = sockaddr_storage()
        var length = Int32(MemoryLayout<sockaddr_storage>.size)
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                uv_tcp_getsockname(handle, $0, &length)
                #expect(Glibc.connect(client, $0, socklen_t(length)) == 0)
            }
        }
        return client
    }
}
