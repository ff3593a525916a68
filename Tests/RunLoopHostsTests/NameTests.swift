import Glibc
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

@Suite("Names on simulated hosts")
struct NameTests {
    /// Returns the addresses that a host finds for names, or the failure's reason, one line for each.
    private func find(_ names: [String], hosts: String?, _ prepare: (SimulatedNetwork) -> Void = { _ in }) -> [String] {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            prepare(network)
            if let hosts { network.test.disk.install(Array(hosts.utf8), at: "/etc/hosts") }
            return names.map { name in
                let found = Log<String>()
                HostResolver.resolve(name, port: 0, on: simulation.loop) { result in
                    switch result {
                    case .success(let addresses): found(addresses.map { $0.digits }.joined(separator: " "))
                    case .failure(let failure): found(failure.reason)
                    }
                }
                simulation.advance(by: .seconds(1))
                return "\(name): \(found.entries.joined())"
            }
        }
    }

    @Test("a host has localhost and its own name, and finds other names in its file before it asks the network")
    func order() {
        func prepare(_ network: SimulatedNetwork) {
            network.addHost("other") { _ in }
            network.setAnswer(.addresses(["192.0.2.1"]), for: "name")
        }
        let names = ["localhost", "test", "other", "name", "printer", "nobody"]
        let unknown = "Name or service not known"
        let usual = [
            "localhost: 127.0.0.1 ::1", "test: 10.255.0.1 fdff::1", "other: 10.255.0.2 fdff::2", "name: 192.0.2.1",
            "printer: \(unknown)", "nobody: \(unknown)",
        ]
        #expect(find(names, hosts: nil, prepare) == usual)
        #expect(find(names, hosts: "# nothing\n", prepare) == usual)
        let hosts = "10.9.9.9 Name laser printer # a comment\n10.8.8.8 other\nfd00::99 printer\n"
        #expect(
            find(names + ["PRINTER"], hosts: hosts, prepare) == [
                usual[0], usual[1], "other: 10.8.8.8", "name: 10.9.9.9", "printer: 10.9.9.9 fd00::99", usual[5],
                "PRINTER: 10.9.9.9 fd00::99",
            ])
    }

    @Test("a file that a program writes counts from then on, on its own host only")
    func written() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Log<String>()
            @Sendable func find(_ loop: RunLoop) {
                HostResolver.resolve("db", port: 0, on: loop) { log("\((try? $0.get().first?.digits) ?? "none")") }
            }
            network.addHost("host") { loop in
                find(loop)
                loop.perform(afterDelay: .seconds(1)) {
                    try! Disk.current.open("/etc/hosts", .readingAndWritingNew).write(
                        Array("10.7.7.7 db\n".utf8), at: 0)
                    find(loop)
                }
            }
            network.addHost("other") { loop in loop.perform(afterDelay: .seconds(2)) { find(loop) } }
            simulation.advance(by: .seconds(3))
            #expect(log.entries == ["none", "10.7.7.7", "none"])
        }
    }

    private static let hosts = """
        # A comment, and an empty line

        127.0.0.1\tlocalhost localhost.localdomain   # not-this
          10.1.2.3   Leading.Space  a1\ta2
        10.1.2.3#glued x1
        10.1.2.4 hash#tail x2
        fd00::7 six both
        10.1.2.5 both
        fe80::1%lo scoped
        10.1.2 short
        010.1.2.3 octal
        1.2.3.4.5 long
        ::ffff:10.1.2.6 mapped
        10.1.2.7
        10.1.2.8 \u{C}feed\rreturn
        10.1.2.9 trailing.
        10.1.2.9 both twice twice
        10.1.2.3 last
        """
    /// The addresses of each name in the file, sorted, as Debian 12's C library gives them.
    private static let expected = [
        "localhost": "127.0.0.1", "localhost.localdomain": "127.0.0.1", "not-this": "", "leading.space": "10.1.2.3",
        "LEADING.SPACE": "10.1.2.3", "a1": "10.1.2.3", "a2": "10.1.2.3", "x1": "", "hash": "10.1.2.4", "hash#tail": "",
        "x2": "", "six": "fd00::7", "both": "10.1.2.5 10.1.2.9 fd00::7", "scoped": "", "short": "", "octal": "",
        "long": "", "mapped": "::ffff:10.1.2.6", "feed": "10.1.2.8", "return": "10.1.2.8", "trailing": "",
        "trailing.": "10.1.2.9", "twice": "10.1.2.9", "last": "10.1.2.3",
    ]

    /// Returns the C library's answers with the file in place of this machine's; `nil` if this process may not put it
    /// there, not even for one of its children.
    private static func answers() -> [String: String]? {
        let directory = TemporaryDirectory()
        directory.write(hosts, to: "hosts")
        directory.write(
            """
            mount --bind \(directory["hosts"]) /etc/hosts || exit
            for name in \(expected.keys.map { "'\($0)'" }.joined(separator: " ")); do
                echo "$name="$(getent -A -s files ahosts "$name" | cut -d' ' -f1 | sort -u)
            done
            """, to: "script")
        guard let stream = popen("unshare -rm sh \(directory["script"]) 2> /dev/null", "r") else { return nil }
        defer { pclose(stream) }
        var found: [String: String] = [:]
        while let line = readLine(from: stream) {
            let parts = line.split(separator: "=", omittingEmptySubsequences: false)
            found[String(parts[0])] = String(parts[1])
        }
        return found.isEmpty ? nil : found
    }

    private static func readLine(from stream: UnsafeMutablePointer<FILE>) -> String? {
        var room = [CChar](repeating: 0, count: 500)
        guard fgets(&room, 500, stream) != nil else { return nil }
        return room.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }.trimming("\n")
    }

    @Test("a file of names is understood as the C library understands it")
    func file() {
        let names = Self.expected.keys.sorted()
        let found = find(names, hosts: Self.hosts) { network in
            for name in ["localhost", "localhost.localdomain"] {
                network.setAnswer(.failure(.notFound, reason: ""), for: name)
            }
        }
        for (name, line) in zip(names, found) {
            let addresses = line.dropFirst(name.count + 2).replacing("Name or service not known", with: "")
            #expect(addresses.split(separator: " ").sorted().joined(separator: " ") == Self.expected[name], "\(name)")
        }
        if let answers = Self.answers() { #expect(answers == Self.expected) }
    }
}

extension Endpoint {
    /// The address without the port.
    fileprivate var digits: String {
        String("\(self)".dropLast(2)).replacing("[", with: "").replacing("]", with: "")
    }
}

extension String {
    fileprivate func trimming(_ end: String) -> String { hasSuffix(end) ? String(dropLast(end.count)) : self }
}
