import Glibc
import RunLoopHosts
import RunLoopSimulation
import Testing

/// Scripts of Python whose output on a simulated host equals that on the machine of the test.
enum KernelScript {
    /// Calls a function, and prints its result or the name of its error.
    private static let beginning = """
        import ctypes, errno, fcntl, os, pathlib, shutil, signal, stat, subprocess, sys, tempfile, threading, time
        c = ctypes.CDLL(None, use_errno=True)
        def told(name, call, *arguments, **others):
            try: print(name, call(*arguments, **others))
            except OSError as error: print(name, errno.errorcode[error.errno])
        def called(name, *arguments):
            result = c[name](*arguments)
            print(name, errno.errorcode[ctypes.get_errno()] if result < 0 else result)
        def put(path, text):
            with open(path, "w") as file: file.write(text)
        def got(path):
            with open(path) as file: return file.read()

        """

    private static func simulated(_ script: String) -> [String] {
        withSimulation(seed: 1, traced: true) { simulation in
            let script = "import os\nos.mkdir('/data/work'); os.chdir('/data/work')\n" + script
            SimulatedNetwork(simulation).addProgram(
                "host", at: "/usr/bin/python3", arguments: ["-u", "-c", script], mayFail: true)
            simulation.advance(by: .seconds(100))
            #expect(simulation.escapes == [])
            return ProgramTests.output(of: "host", simulation)
        }
    }

    /// Runs a script of Python in a folder of its own, on the machine of the test.
    private static func real(_ script: String) throws -> [String] {
        var name = Array("/tmp/kernel.XXXXXX".utf8CString)
        let folder = String(cString: try #require(mkdtemp(&name)))
        defer { system("rm -r \(folder)") }
        let file = try #require(fopen("\(folder)/script", "w"))
        fputs(script, file)
        fclose(file)
        let output = try #require(
            popen("mkdir \(folder)/work && cd \(folder)/work && umask 022 && python3 -u ../script 2>&1", "r"))
        defer { pclose(output) }
        var bytes: [UInt8] = []
        while case let byte = fgetc(output), byte >= 0 { bytes.append(UInt8(byte)) }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Expects that a script writes the same lines in both ways.
    static func expectSame(_ script: String, location: SourceLocation = #_sourceLocation) throws {
        let (real, simulated) = (try real(beginning + script), simulated(beginning + script))
        for (index, line) in real.enumerated() {
            let other = simulated.indices.contains(index) ? simulated[index] : "nothing"
            #expect(other == line, sourceLocation: location)
        }
        #expect(real.count == simulated.count, "\(simulated.dropFirst(real.count))", sourceLocation: location)
    }
}
