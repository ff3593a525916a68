import RunLoopHosts
import RunLoopSimulation
import RunLoopUnix
import Testing

/// Signals of programs of the system.
extension ProgramTests {
    /// Runs a script of Python that receives a signal each ten seconds.
    private func run(_ script: String, receiving first: Signal, _ others: Signal...) -> Run {
        withSimulation(traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addProgram(
                "host", at: Self.python, arguments: ["-u", "-c", script], mayFail: true)
            for signal in [first] + others {
                simulation.advance(by: .seconds(10))
                host.send(signal)
            }
            simulation.advance(by: .seconds(100))
            return Run(
                lines: Self.output(of: "host", simulation), escapes: simulation.escapes,
                ending: host.ending.map { "\($0)" } ?? "runs")
        }
    }

    @Test("handles signals, ignores some, and is ended by others")
    func handlers() {
        let script = """
            import signal, sys, time
            begin = time.monotonic()
            signal.signal(signal.SIGHUP, lambda *_: print("reload at", time.monotonic() - begin))
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
            while True: time.sleep(1000)
            """
        let gentle = run(script, receiving: .hangUp, .user1, .child, .hangUp, .terminate)
        #expect(gentle == Run(lines: ["reload at 10.0", "reload at 40.0"], escapes: [], ending: "exited(7)"))
        #expect(run(script, receiving: .user2).ending == "killed(SIGUSR2)")
        #expect(run(script, receiving: .hangUp, .kill).ending == "killed(SIGKILL)")
    }

    @Test("has calls that a handler interrupts, and others that are made again after it")
    func interruptedCalls() {
        let script = """
            import ctypes, errno, os, signal, threading, time
            c = ctypes.CDLL(None, use_errno=True)
            action = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda _: os.write(end, b"!"))
            class Action(ctypes.Structure):
                _fields_ = [("handler", ctypes.c_void_p), ("set", ctypes.c_ulong * 16), ("flags", ctypes.c_int),
                            ("restorer", ctypes.c_void_p)]
            def handle(flags):
                it = Action(ctypes.cast(action, ctypes.c_void_p), (ctypes.c_ulong * 16)(), flags, None)
                assert c.sigaction(signal.SIGUSR1, ctypes.byref(it), None) == 0
            begin = time.monotonic()
            def told(name, result):
                print(name, result, errno.errorcode.get(ctypes.get_errno()) if result < 0 else "", time.monotonic() - begin)
            start, end = os.pipe()
            byte = ctypes.create_string_buffer(1)
            handle(0)
            told("read", c.read(os.eventfd(0), byte, 8))
            told("left", os.read(start, 10).count(b"!"))
            handle(0x10000000)
            told("read again", c.read(start, byte, 1))
            told("poll", c.poll(None, 0, 100000))
            left = (ctypes.c_long * 2)()
            told("sleep", c.nanosleep(ctypes.byref((ctypes.c_long * 2)(100, 0)), left))
            print("left", left[0], left[1])
            """
        let run = run(script, receiving: .user1, .user1, .user1, .user1)
        #expect(
            run.lines == [
                "read -1 EINTR 10.0", "left 1  10.0", "read again 1  20.0", "poll -1 EINTR 30.0",
                "sleep -1 EINTR 40.0", "left 90 0",
            ], "\(run)")
        #expect(run.escapes == [] && run.ending == "exited(0)", "\(run)")
    }

    @Test("blocks signals, and takes them when it likes")
    func blockedSignals() {
        let script = """
            import ctypes, os, select, signal, time
            begin = time.monotonic()
            def at(): return time.monotonic() - begin
            signal.signal(signal.SIGUSR1, lambda *_: print("handled", at()))
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP})
            time.sleep(15)
            print("pending", signal.sigpending() == {signal.SIGUSR1}, at())
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
            print("unblocked", at())
            print("waited", signal.sigwait({signal.SIGUSR2, signal.SIGHUP}) == signal.SIGUSR2, at())
            print("late", signal.sigtimedwait({signal.SIGUSR2}, 5), at())
            c = ctypes.CDLL(None, use_errno=True)
            signals = c.signalfd(-1, ctypes.byref((ctypes.c_ulong * 16)(1 << (signal.SIGHUP - 1))), 0x800)
            epoll = select.epoll()
            epoll.register(signals, select.EPOLLIN)
            print("ready", epoll.poll(100) == [(signals, select.EPOLLIN)], at())
            print("read", os.read(signals, 128)[0] == signal.SIGHUP, epoll.poll(1))
            """
        let run = run(script, receiving: .user1, .user2, .hangUp)
        #expect(
            run.lines == [
                "pending True 15.0", "handled 15.0", "unblocked 15.0", "waited True 20.0", "late None 25.0",
                "ready True 30.0", "read True []",
            ], "\(run)")
        #expect(run.escapes == [] && run.ending == "exited(0)", "\(run)")
    }

    @Test("sends signals to itself, by timers too")
    func ownSignals() {
        let script = """
            import os, signal, threading, time
            begin = time.monotonic()
            signal.signal(signal.SIGALRM, lambda *_: print("alarm", time.monotonic() - begin))
            signal.signal(signal.SIGUSR1, lambda *_: print("user", time.monotonic() - begin))
            print(signal.setitimer(signal.ITIMER_REAL, 1.5, 2), signal.getitimer(signal.ITIMER_REAL))
            time.sleep(4)
            print(signal.setitimer(signal.ITIMER_REAL, 0))
            os.kill(os.getpid(), signal.SIGUSR1)
            signal.raise_signal(signal.SIGUSR1)
            threading.Thread(target=lambda: (time.sleep(1), signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1))).start()
            time.sleep(2)
            signal.alarm(3)
            signal.pause()
            try: os.kill(12345, 0)
            except ProcessLookupError: print("nobody")
            os.abort()
            """
        let run = run(script, mayFail: true)
        #expect(
            run.lines == [
                "(0.0, 0.0) (1.5, 2.0)", "alarm 1.5", "alarm 3.5", "(1.5, 2.0)", "user 4.0", "user 4.0", "user 5.0",
                "alarm 9.0", "nobody",
            ], "\(run)")
        #expect(run.escapes == [] && run.ending == "killed(SIGABRT)", "\(run)")
    }

    @Test("of asyncio handles signals on its loop")
    func asyncioSignals() {
        let script = """
            import asyncio, signal
            async def main():
                loop, ended = asyncio.get_running_loop(), asyncio.Event()
                loop.add_signal_handler(signal.SIGHUP, lambda: print("reload", round(loop.time() - begin, 3)))
                loop.add_signal_handler(signal.SIGTERM, ended.set)
                begin = loop.time()
                await ended.wait()
                await asyncio.sleep(3)
                print("ended", round(loop.time() - begin, 3))
            asyncio.run(main())
            """
        let run = run(script, receiving: .hangUp, .hangUp, .terminate)
        #expect(
            run == Run(lines: ["reload 10.0", "reload 20.0", "ended 33.0"], escapes: [], ending: "exited(0)"), "\(run)")
    }
}
