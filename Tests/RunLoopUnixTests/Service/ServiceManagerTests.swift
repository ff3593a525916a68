import Glibc
import RunLoopKit
import Testing

@testable import RunLoopUnix

@Suite("The service manager")
struct ServiceManagerTests {
    @Test("each call is one message", arguments: [false, true])
    func messages(isAbstract: Bool) throws {
        let receiver = try NotifyReceiver(isAbstract: isAbstract)
        let manager = try receiver.manager()
        #expect(manager.isPresent && manager.remarks.isEmpty)
        #expect(try manager.ready())
        #expect(try manager.status("serving 3 clients"))
        #expect(try manager.mainPID(42))
        #expect(try manager.extendTimeout(.seconds(1.5)))
        #expect(try manager.feedWatchdog())
        #expect(try manager.stopping())
        #expect(
            receiver.messages() == [
                "READY=1", "STATUS=serving 3 clients", "MAINPID=42", "EXTEND_TIMEOUT_USEC=1500000", "WATCHDOG=1",
                "STOPPING=1",
            ])
    }

    @Test("a reload carries the time of the monotonic clock in microseconds")
    func reloading() throws {
        func microseconds() -> Int { Int(RunLoop.current.now.nanoseconds / 1000) }
        let receiver = try NotifyReceiver()
        let manager = try receiver.manager()
        let before = microseconds()
        try manager.reloading()
        let after = microseconds()
        let lines = try #require(receiver.next()).split(separator: "\n")
        #expect(lines.count == 2 && lines.first == "RELOADING=1")
        let field = try #require(lines.last?.split(separator: "="))
        let time = try #require(field.last.flatMap { Int($0) })
        #expect(field.first == "MONOTONIC_USEC")
        #expect(time >= before && time <= after)
    }

    @Test(
        "without a manager nothing is sent, which the calls and the remarks report",
        arguments: [[:], ["NOTIFY_SOCKET": ""]])
    func absent(environment: [String: String]) throws {
        let manager = try ServiceManager(environment: environment)
        #expect(!manager.isPresent)
        #expect(try !manager.ready() && !manager.reloading() && !manager.stopping() && !manager.status("x"))
        #expect(manager.remarks == ["NOTIFY_SOCKET is not set: there is no service manager to notify"])
    }

    @Test(
        "an invalid address is refused",
        arguments: ["relative", "@", "/", "vsock:2:1234", "/" + String(repeating: "x", count: 107), "/a\0b"])
    func badAddress(address: String) throws {
        let error = #expect(throws: ServiceManagerError.self) {
            try ServiceManager(environment: ["NOTIFY_SOCKET": address])
        }
        guard case .invalidVariable("NOTIFY_SOCKET", address, _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("an address as long as the system allows is taken, and no longer")
    func longestAddress() throws {
        #expect(try NotifySocket.address(of: "/" + String(repeating: "x", count: 106)).count == 110)
        #expect(try NotifySocket.address(of: "@" + String(repeating: "x", count: 107)).count == 110)
        #expect(throws: ServiceManagerError.self) {
            try NotifySocket.address(of: "@" + String(repeating: "x", count: 108))
        }
    }

    @Test("a manager that has gone is an error of the system")
    func gone() throws {
        let manager = try ServiceManager(environment: ["NOTIFY_SOCKET": "/nonexistent/notify"])
        #expect(throws: ServiceManagerError.system(SystemError("notify the service manager", errno: ENOENT))) {
            try manager.ready()
        }
    }

    @Test("nothing waits for a manager that does not read, and nothing that was sent is lost")
    func busy() throws {
        let receiver = try NotifyReceiver()
        let manager = try receiver.manager()
        receiver.fill(manager)
        #expect(throws: ServiceManagerError.busy) { try manager.feedWatchdog() }
        #expect(throws: ServiceManagerError.busy) { try manager.ready() }
        #expect(throws: ServiceManagerError.busy) { try manager.reloading() }
        #expect(throws: ServiceManagerError.busy) { try manager.stopping() }
        #expect(throws: ServiceManagerError.busy) { try manager.mainPID(1) }
        #expect(throws: ServiceManagerError.busy) { try manager.extendTimeout(.seconds(1)) }
        let messages = receiver.messages()
        #expect(messages == messages.indices.map { "STATUS=\($0)" })
        #expect(try manager.ready())
        #expect(receiver.messages() == ["READY=1"])
    }

    @Test("a message that would be taken for several, or for none, is refused")
    func badMessages() throws {
        let receiver = try NotifyReceiver()
        let manager = try receiver.manager()
        #expect(throws: ServiceManagerError.self) { try manager.status("fine\nMAINPID=1") }
        #expect(throws: ServiceManagerError.self) { try manager.mainPID(0) }
        #expect(throws: ServiceManagerError.self) { try manager.extendTimeout(.zero) }
        #expect(throws: ServiceManagerError.self) { try manager.extendTimeout(.nanoseconds(10)) }
        #expect(throws: ServiceManagerError.self) { try manager.extendTimeout(.seconds(Int64.max)) }
        #expect(receiver.messages().isEmpty)
    }

    @Test("the watchdog's period is read where it is meant for this process")
    func watchdogPeriod() throws {
        let own = "\(getpid())"
        #expect(try ServiceManager(environment: [:]).watchdogPeriod == nil)
        #expect(try ServiceManager(environment: ["WATCHDOG_USEC": "30000000"]).watchdogPeriod == .seconds(30))
        #expect(
            try ServiceManager(environment: ["WATCHDOG_USEC": "1", "WATCHDOG_PID": own]).watchdogPeriod
                == .microseconds(1))
        let other = try ServiceManager(environment: ["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"])
        #expect(other.watchdogPeriod == nil)
        #expect(other.remarks.contains("WATCHDOG_PID is 1, and this is process \(own): the watchdog is not ours"))
    }

    @Test(
        "an invalid period or process is refused",
        arguments: [
            ("WATCHDOG_USEC", "0"), ("WATCHDOG_USEC", "-1"), ("WATCHDOG_USEC", "+1"), ("WATCHDOG_USEC", "30s"),
            ("WATCHDOG_USEC", "18446744073709551615"), ("WATCHDOG_USEC", "99999999999999999999"),
            ("WATCHDOG_PID", "me"), ("WATCHDOG_PID", "0"), ("WATCHDOG_PID", "4294967297"),
        ])
    func badWatchdog(name: String, value: String) throws {
        let environment = ["WATCHDOG_USEC": "1000"].merging([name: value]) { _, new in new }
        let error = #expect(throws: ServiceManagerError.self) { try ServiceManager(environment: environment) }
        guard case .invalidVariable(name, value, _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("the variables are read from the process's environment, and removed if asked")
    func processEnvironment() async {
        await #expect(processExitsWith: .success) {
            setenv("NOTIFY_SOCKET", "/run/notify", 1)
            setenv("WATCHDOG_USEC", "1000", 1)
            let kept = try ServiceManager()
            precondition(kept.isPresent && getenv("NOTIFY_SOCKET") != nil, "removed without being asked")
            let removed = try ServiceManager(unsetEnvironment: true)
            precondition(removed.watchdogPeriod == .milliseconds(1), "not read")
            precondition(getenv("NOTIFY_SOCKET") == nil && getenv("WATCHDOG_USEC") == nil, "not removed")
        }
    }
}
