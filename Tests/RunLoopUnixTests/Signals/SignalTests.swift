import Glibc
import RunLoopUnix
import Testing

@Suite("Signals by name and number")
struct SignalTests {
    @Test("a signal has the system's name")
    func names() {
        #expect(Signal.terminate.name == "SIGTERM")
        #expect(Signal.windowChange.description == "SIGWINCH")
        #expect(Signal.realTime(3).name == "SIGRTMIN+3")
        #expect(Signal(rawValue: 33).name == "signal 33")
    }

    @Test("only real-time signals are queued")
    func realTime() {
        #expect(!Signal.terminate.isRealTime)
        #expect(Signal.firstRealTime.isRealTime && Signal.lastRealTime.isRealTime)
        #expect(!Signal(rawValue: Signal.lastRealTime.rawValue + 1).isRealTime)
    }

    @Test("SIGKILL and SIGSTOP cannot be watched or ignored", arguments: [Signal.kill, .stop])
    func unstoppable(signal: Signal) {
        #expect(throws: SignalError.cannotBeHandled(signal)) { try SignalSource(signal: signal) { _ in } }
        #expect(throws: SignalError.cannotBeHandled(signal)) { try Signal.ignore(signal) }
    }

    @Test("numbers that are no signal for programs are refused", arguments: [0, -1, 32, 33, 65, .max, .min])
    func numbers(number: Int32) {
        let signal = Signal(rawValue: number)
        #expect(throws: SignalError.noSuchSignal(number)) { try SignalSource(signal: signal) { _ in } }
        #expect(throws: SignalError.noSuchSignal(number)) { try Signal.ignore(signal) }
    }

    @Test("signals of faults are refused", arguments: [Signal.segmentationFault, .illegalInstruction, .trap])
    func faults(signal: Signal) {
        #expect(throws: SignalError.isFault(signal)) { try SignalSource(signal: signal) { _ in } }
    }

    @Test("an error describes the problem with the signal")
    func descriptions() {
        #expect(SignalError.cannotBeHandled(.kill).description == "SIGKILL can be neither handled nor ignored")
        #expect(SignalError.noSuchSignal(99).description == "the system has no signal 99 for programs")
    }

    @Test("a real-time signal beyond the last is a mistake")
    func beyond() async {
        await #expect(processExitsWith: .failure) { _ = Signal.realTime(1000) }
    }
}
