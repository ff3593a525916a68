#if Adapters
import CGLib
import Glibc
import RunLoopGLib
import RunLoopKit
import TestSupport
import Testing

/// Runs `body` on a thread of its own, whose loop has a main context.
private func withGLib<Result: Sendable>(
    inModes modes: RunLoop.Modes = .common,
    _ body: @escaping @Sendable (RunLoop, OpaquePointer?, GLibContext) throws -> Result
) throws -> Result {
    try onThread {
        Swift.Result {
            let context = g_main_context_new()
            defer { g_main_context_unref(context) }
            let loop = RunLoop.current
            let glib = try GLibContext(context, on: loop, inModes: modes)
            defer { glib.invalidate() }
            return try body(loop, context, glib)
        }
    }.get()
}

/// A pipe whose ends are closed at the end.
private final class Pipe {
    let (readEnd, writeEnd): (Int32, Int32)

    init() {
        var ends: [Int32] = [0, 0]
        precondition(pipe(&ends) == 0)
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    func put() { _ = write(writeEnd, "x", 1) }

    func take() -> Bool {
        var byte: UInt8 = 0
        return read(readEnd, &byte, 1) == 1
    }
}

private let drag: RunLoop.Mode = "drag"

/// Called by the check and the dispatch of a source.
private let checkHandler = RunLoop.Local<(() -> Void)?> { _ in nil }

@Suite("A main context of GLib in a loop")
struct GLibContextTests {
    @Test("time-outs, idle sources and descriptors are dispatched while the loop sleeps for both, and none early")
    func kinds() throws {
        let words = try withGLib { loop, context, _ in
            let words = Log<String>()
            let start = loop.now
            let pipe = Pipe()
            addTimeout(20, to: context) {
                words(loop.now - start >= .milliseconds(20) ? "timeout" : "early")
                return false
            }
            addIdle(to: context) {
                words("idle")
                return false
            }
            addDescriptor(pipe.readEnd, to: context) {
                words(pipe.take() ? "descriptor" : "nothing")
                loop.stop()
                return false
            }
            loop.perform(afterDelay: .milliseconds(40)) {
                words("timer")
                pipe.put()
            }
            loop.run(in: .default)
            return words.text
        }
        #expect(words == "idle timeout timer descriptor")
    }

    @Test("a pass dispatches the ready sources of the highest priority, and the next ones after it")
    func priorities() throws {
        let words = try withGLib { loop, context, _ in
            let words = Log<String>()
            for (name, priority) in [("low", 300), ("high", -100), ("default", 0), ("high", -100)] as [(String, Int32)]
            {
                addIdle(to: context, priority: priority) {
                    words(name)
                    return false
                }
            }
            addIdle(to: context, priority: 1000) {
                loop.stop()
                return false
            }
            loop.run(in: .default)
            return words.text
        }
        #expect(words == "high high default low")
    }

    @Test("a context rests in a mode that it is not in, and is served once in the next run of its own mode")
    func modes() throws {
        let words = try withGLib(inModes: .default) { loop, context, _ in
            let words = Log<String>()
            let pipe = Pipe()
            var fires = 0
            addTimeout(10, to: context) {
                fires += 1
                return true
            }
            addDescriptor(pipe.readEnd, to: context) {
                words(pipe.take() ? "descriptor" : "nothing")
                return true
            }
            loop.add(Timer(timeInterval: .seconds(60), repeats: true) { _ in }, forMode: "drag")
            loop.run(in: .default, until: loop.now + .milliseconds(25))
            pipe.put()
            let before = fires
            let passes = loop.statistics.passes
            loop.run(in: drag, until: loop.now + .milliseconds(60))
            words("\(fires - before)")
            // The ready descriptor does not wake the loop again and again.
            words(loop.statistics.passes - passes < 5 ? "rests" : "spins")
            loop.run(in: .default, until: loop.now + .milliseconds(2))
            words(fires - before == 1 ? "one" : "\(fires - before)")
            return words.text
        }
        #expect(words == "0 rests descriptor one")
    }

    @Test("neither side starves: a source that is always ready, and a block that always posts another")
    func starving() throws {
        let counts = try withGLib { loop, context, _ in
            var (idles, ticks, fires, blocks) = (0, 0, 0, 0)
            addIdle(to: context) {
                idles += 1
                return true
            }
            addTimeout(1, to: context, priority: 300) {
                // GLib itself never reaches a source of lower priority than the idle one.
                ticks += 1
                return true
            }
            loop.add(Timer(timeInterval: .milliseconds(1), repeats: true) { _ in fires += 1 }, forMode: .common)
            func again() {
                blocks += 1
                if idles < 1000 || fires < 10 || blocks < 1000 { loop.perform(again) } else { loop.stop() }
            }
            loop.perform(again)
            loop.run(in: .default)
            return [idles, fires, blocks, ticks]
        }
        #expect(counts[0] >= 1000 && counts[1] >= 10 && counts[2] >= 1000 && counts[3] == 0)
    }

    @Test("sources that the loop's own blocks attach are served, though the loop never sleeps")
    func busyLoop() throws {
        let isServed = try withGLib { loop, context, _ in
            var isServed = false
            func again() { if !isServed { loop.perform(again) } }
            loop.perform {
                addTimeout(5, to: context) {
                    isServed = true
                    loop.stop()
                    return false
                }
                again()
            }
            loop.run(in: .default, until: loop.now + .seconds(60))
            return isServed
        }
        #expect(isServed)
    }

    @Test("a callback of GLib runs the loop in another mode, to any depth, and GLib continues there")
    func runsWithinCallbacks() throws {
        let result = try withGLib { loop, context, _ in
            loop.addCommonMode(drag)
            var (depth, deepest, fires, still) = (0, 0, 0, 0)
            loop.add(Timer(timeInterval: .milliseconds(1), repeats: true) { _ in still += 1 }, forMode: .default)
            addTimeout(1, to: context) {
                fires += 1
                return true
            }
            func nest() {
                depth += 1
                deepest = max(deepest, depth)
                let (before, stillBefore) = (fires, still)
                if depth < 5 {
                    addIdle(to: context) {
                        nest()
                        return false
                    }
                }
                while fires < before + 3 { loop.run(mode: drag, before: loop.now + .milliseconds(5)) }
                if still != stillBefore { depth = .min }
                depth -= 1
            }
            addIdle(to: context) {
                nest()
                loop.stop()
                return false
            }
            loop.run(in: .default)
            return [depth, deepest]
        }
        // A source that is being dispatched is not dispatched again, so the time-out fires in each run, and the deepest
        // run is the last to begin and the first to end.
        #expect(result == [0, 5])
    }

    @Test("while a handler runs GLib's own loop, timers, tasks and the context continue in the mode of its run")
    func runsOfGLib() throws {
        let words = try withGLib { loop, context, _ in
            let words = Log<String>()
            var (common, still, fires, steps) = (0, 0, 0, 0)
            loop.addCommonMode(drag)
            loop.add(Timer(timeInterval: .milliseconds(1), repeats: true) { _ in common += 1 }, forMode: .common)
            loop.add(Timer(timeInterval: .milliseconds(1), repeats: true) { _ in still += 1 }, forMode: .default)
            addTimeout(1, to: context) {
                fires += 1
                return true
            }
            let task = loop.task(inModes: .common) {
                while !Task.isCancelled {
                    steps += 1
                    try? await loop.clock.sleep(for: .milliseconds(1))
                }
            }
            loop.perform(inModes: RunLoop.Modes(drag)) {
                let (before, stillBefore, tasks) = (common, still, steps)
                let inner = g_main_loop_new(context, 0)
                defer { g_main_loop_unref(inner) }
                addTimeout(30, to: context) {
                    g_main_loop_quit(inner)
                    return false
                }
                let firesBefore = fires
                g_main_loop_run(inner)
                words(common > before + 3 ? "common" : "late \(common - before)")
                words(still == stillBefore ? "still" : "moved")
                words(fires > firesBefore + 3 ? "glib" : "late \(fires - firesBefore)")
                words(steps > tasks + 3 ? "task" : "late \(steps - tasks)")
                loop.stop()
            }
            loop.run(in: drag)
            task.cancel()
            loop.run(in: .default, until: loop.now + .milliseconds(5))
            words(still > 0 ? "again" : "never")
            return words.text
        }
        #expect(words == "common still glib task again")
    }

    @Test("a handler that is called in a run of GLib's own runs the loop, and GLib is served there")
    func runsWithinRunsOfGLib() throws {
        let words = try withGLib { loop, context, _ in
            let words = Log<String>()
            var fires = 0
            addTimeout(1, to: context) {
                fires += 1
                return true
            }
            let outer = g_main_loop_new(context, 0)
            defer { g_main_loop_unref(outer) }
            loop.perform(afterDelay: .milliseconds(2)) {
                let before = fires
                loop.run(in: .default, until: loop.now + .milliseconds(20))
                words(fires > before + 3 ? "glib" : "late \(fires - before)")
                g_main_loop_quit(outer)
            }
            g_main_loop_run(outer)
            return words.text
        }
        #expect(words == "glib")
    }

    @Test("handlers in a run of GLib's own run GLib again, with many more descriptors, to any depth")
    func growingRunsOfGLib() throws {
        let counts = try withGLib { loop, context, _ in
            var (depth, served) = (0, 0)
            var pipes: [Pipe] = []
            func nest() {
                depth += 1
                let inner = g_main_loop_new(context, 0)
                defer { g_main_loop_unref(inner) }
                // GLib keeps its descriptors in one array for all runs, and moves it.
                for _ in 0..<40 {
                    let pipe = Pipe()
                    pipes.append(pipe)
                    addDescriptor(pipe.readEnd, to: context) {
                        served += pipe.take() ? 1 : 0
                        return false
                    }
                }
                loop.perform(inModes: .common) {
                    if depth < 5 { nest() }
                    pipes.removeLast().put()
                    loop.perform(afterDelay: .milliseconds(1), inModes: .common) { g_main_loop_quit(inner) }
                }
                g_main_loop_run(inner)
            }
            nest()
            return [depth, served]
        }
        #expect(counts == [5, 5])
    }

    @Test("a loop that always has something to do leaves GLib its turns in a run of GLib's own")
    func busyLoopInRunOfGLib() throws {
        let (idles, blocks) = try withGLib { loop, context, _ in
            var (idles, blocks) = (0, 0)
            let outer = g_main_loop_new(context, 0)
            defer { g_main_loop_unref(outer) }
            addIdle(to: context, priority: 300) {
                idles += 1
                if idles == 10 { g_main_loop_quit(outer) }
                return true
            }
            var isOver = false
            func again() {
                blocks += 1
                if !isOver { loop.perform(again) }
            }
            loop.perform(again)
            g_main_loop_run(outer)
            isOver = true
            loop.run(in: .default, until: .distantPast)
            return (idles, blocks)
        }
        #expect(idles >= 10 && blocks > 10)
    }

    @Test("a context that is added within a run of its loop is served in that run and in later ones")
    func addedLate() throws {
        let words = onThread {
            let (words, loop) = (Log<String>(), RunLoop.current)
            let context = g_main_context_new()
            defer { g_main_context_unref(context) }
            var glib: GLibContext?
            func once(_ word: String) {
                addTimeout(1, to: context) {
                    words(word)
                    loop.stop()
                    return false
                }
            }
            loop.perform {
                glib = try! GLibContext(context, on: loop)
                once("first")
            }
            loop.run(in: .default)
            once("second")
            loop.run(in: .default)
            glib?.invalidate()
            return words.text
        }
        #expect(words == "first second")
    }

    @Test("the loop quits GLib's loop, which is the outermost, and its handlers run in the default mode")
    func outermost() throws {
        let words = try withGLib { loop, context, _ in
            let words = Log<String>()
            let outer = g_main_loop_new(context, 0)
            defer { g_main_loop_unref(outer) }
            loop.perform(afterDelay: .milliseconds(5)) {
                words("\(loop.currentMode == .default)")
                g_main_loop_quit(outer)
            }
            g_main_loop_run(outer)
            words("quit")
            return words.text
        }
        #expect(words == "true quit")
    }

    @Test("a stop while GLib waits in a handler ends the handler's run, once GLib's loop is over")
    func stops() throws {
        let words = try withGLib { loop, context, _ in
            let words = Log<String>()
            loop.perform {
                let inner = g_main_loop_new(context, 0)
                defer { g_main_loop_unref(inner) }
                loop.perform(afterDelay: .milliseconds(2)) { loop.stop() }
                addTimeout(20, to: context) {
                    words("inner")
                    g_main_loop_quit(inner)
                    return false
                }
                g_main_loop_run(inner)
            }
            words("\(loop.run(in: .default, until: loop.now + .seconds(60)))")
            return words.text
        }
        #expect(words == "inner stopped")
    }

    @Test("a busy loop of GLib in a handler gives the loop its turns")
    func busyRunOfGLib() throws {
        let fires = try withGLib { loop, context, _ in
            var fires = 0
            loop.add(Timer(timeInterval: .milliseconds(2), repeats: true) { _ in fires += 1 }, forMode: .common)
            loop.perform {
                let inner = g_main_loop_new(context, 0)
                defer { g_main_loop_unref(inner) }
                addIdle(to: context) {
                    if fires >= 10 { g_main_loop_quit(inner) }
                    return fires < 10
                }
                g_main_loop_run(inner)
                loop.stop()
            }
            loop.run(in: .default)
            return fires
        }
        #expect(fires >= 10)
    }

    @Test("another thread wakes the loop by attaching a source, and an idle loop sleeps")
    func threads() throws {
        let (thread, wakeUps) = try withGLib { loop, context, _ in
            let handle = pthread_self()
            let isHere = Flag()
            let smuggled = UInt(bitPattern: context)
            let before = loop.statistics.waits
            let other = PlainThread {
                usleep(20_000)
                let context = OpaquePointer(bitPattern: smuggled)
                addIdle(to: context) {
                    if pthread_equal(pthread_self(), handle) != 0 { isHere.set() }
                    RunLoop.current.stop()
                    return false
                }
            }
            loop.run(in: .default)
            other.join()
            return (isHere.isSet, loop.statistics.waits - before)
        }
        #expect(thread && wakeUps <= 2, "\(wakeUps) wake-ups")
    }

    @Test("a descriptor whose number another file takes between two passes is waited for")
    func numbers() throws {
        let served = try withGLib { loop, context, _ in
            var served = 0
            func next() {
                let pipe = Pipe()
                addDescriptor(pipe.readEnd, to: context) {
                    served += pipe.take() ? 1 : 0
                    // The pipe is closed with the source, and the next one has its numbers.
                    if served < 20 { loop.perform(next) } else { loop.stop() }
                    return false
                }
                loop.perform(afterDelay: .milliseconds(1)) { pipe.put() }
            }
            next()
            loop.run(in: .default, until: loop.now + .seconds(60))
            return served
        }
        #expect(served == 20)
    }

    @Test("a descriptor that is closed while a copy of it is open elsewhere does not keep the loop awake")
    func staleDescriptors() throws {
        let (waits, isServed) = try withGLib { loop, context, _ in
            var pipe: Pipe? = Pipe()
            let copy = dup(pipe!.readEnd)
            defer { close(copy) }
            pipe!.put()
            let number = addDescriptor(pipe!.readEnd, to: context, priority: 1000) { true }
            // Prepared once, and then gone while GLib does not know of the copy.
            addIdle(to: context) {
                loop.perform {
                    removeSource(number, from: context)
                    pipe = nil
                }
                return false
            }
            loop.run(in: .default, until: loop.now + .milliseconds(20))
            let before = loop.statistics.waits
            loop.run(in: .default, until: loop.now + .milliseconds(50))
            let waits = loop.statistics.waits - before
            var isServed = false
            let other = Pipe()
            addDescriptor(other.readEnd, to: context) {
                isServed = other.take()
                loop.stop()
                return false
            }
            loop.perform(afterDelay: .milliseconds(5)) { other.put() }
            loop.run(in: .default, until: loop.now + .seconds(60))
            return (waits, isServed)
        }
        #expect(waits < 10 && isServed, "\(waits) waits")
    }

    @Test("a file, which is always ready, is served in each pass, and the loop's timers fire")
    func files() throws {
        let (calls, fires) = try withGLib { loop, context, _ in
            var (calls, fires) = (0, 0)
            let file = open("/etc/passwd", O_RDONLY)
            defer { close(file) }
            addDescriptor(file, to: context) {
                calls += 1
                return true
            }
            loop.add(Timer(timeInterval: .milliseconds(1), repeats: true) { _ in fires += 1 }, forMode: .common)
            loop.run(in: .default, until: loop.now + .milliseconds(30))
            return (calls, fires)
        }
        #expect(calls > 10 && fires > 3)
    }

    @Test("children are waited for")
    func children() throws {
        let words = try withGLib { loop, context, _ in
            let words = Log<String>()
            let child = forkProcess()
            if child == 0 { _exit(7) }
            let source = g_child_watch_source_new(child)
            let function: GChildWatchFunc = { _, status, pointer in
                Unmanaged<Log<String>>.fromOpaque(pointer!).takeUnretainedValue()("exit \(status >> 8 & 0xff)")
                RunLoop.current.stop()
            }
            g_source_set_callback(
                source, unsafeBitCast(function, to: GSourceFunc.self), Unmanaged.passUnretained(words).toOpaque(), nil)
            g_source_attach(source, context)
            g_source_unref(source)
            loop.run(in: .default, until: loop.now + .seconds(60))
            return words.text
        }
        #expect(words == "exit 7")
    }

    @Test("errors: another thread owns it, the loop has one, the loop is simulated")
    func errors() throws {
        let words = try withGLib { loop, context, _ in
            let words = Log<String>()
            let other = g_main_context_new()
            defer { g_main_context_unref(other) }
            do {
                _ = try GLibContext(other, on: loop)
            } catch let error as GLibError {
                words("\(error == .loopHasContext)")
            }
            let smuggled = UInt(bitPattern: context)
            words(
                onThread {
                    do {
                        _ = try GLibContext(OpaquePointer(bitPattern: smuggled), on: RunLoop.current)
                        return "none"
                    } catch {
                        return "\(error as? GLibError == .ownedByAnotherThread)"
                    }
                })
            return words.text
        }
        #expect(words == "true true")
    }

    @Test("an invalidated context is GLib's alone, and another loop may have it")
    func invalidation() throws {
        let words = onThread {
            let words = Log<String>()
            let context = g_main_context_new()
            let smuggled = UInt(bitPattern: context)
            let glib = try! GLibContext(context, on: RunLoop.current)
            addIdle(to: context) {
                glib.invalidate()
                words("invalid \(!glib.isValid)")
                return false
            }
            let result = RunLoop.current.run(in: .default, until: RunLoop.current.now + .seconds(60))
            words("\(result)")
            words(
                onThread {
                    let loop = RunLoop.current
                    let context = OpaquePointer(bitPattern: smuggled)
                    guard let glib = try? GLibContext(context, on: loop) else { return "owned" }
                    defer { glib.invalidate() }
                    var calls = 0
                    addIdle(to: context) {
                        calls += 1
                        loop.stop()
                        return false
                    }
                    loop.run(in: .default)
                    return "another \(calls)"
                })
            g_main_context_unref(context)
            return words.text
        }
        #expect(words == "invalid true finished another 1")
    }

    @Test("a context that is invalidated in a check of a source dispatches nothing")
    func invalidationInCheck() {
        let words = onThread {
            let (words, loop) = (Log<String>(), RunLoop.current)
            let context = g_main_context_new()
            defer { g_main_context_unref(context) }
            let glib = try! GLibContext(context, on: loop)
            loop[checkHandler] = {
                words("checked")
                glib.invalidate()
            }
            var functions = GSourceFuncs()
            functions.check = { _ in
                RunLoop.current[checkHandler]?()
                return 1
            }
            functions.dispatch = { _, _, _ in
                RunLoop.current[checkHandler]?()
                return 0
            }
            withUnsafeMutablePointer(to: &functions) { functions in
                let source = g_source_new(functions, guint(MemoryLayout<GSource>.size))
                g_source_attach(source, context)
                addTimeout(1, to: context, priority: 300) { false }
                words("\(loop.run(in: .default, until: loop.now + .seconds(60)))")
                g_source_destroy(source)
                g_source_unref(source)
            }
            loop[checkHandler] = nil
            return words.text
        }
        #expect(words == "checked finished")
    }

    @Test("the end of a loop gives the context back")
    func endOfLoop() {
        let words = Log<String>()
        let context = g_main_context_new()
        let smuggled = UInt(bitPattern: context)
        let thread = LoopThread(name: "glib") { loop in
            _ = try! GLibContext(OpaquePointer(bitPattern: smuggled), on: loop)
        }
        thread.remote.perform { _ in words("runs") }
        thread.stop()
        thread.join()
        words("\(g_main_context_acquire(context) != 0)")
        g_main_context_release(context)
        g_main_context_unref(context)
        #expect(words.text == "runs true")
    }
}
#endif
