import Glibc
import RunLoopHosts
import RunLoopSimulation
import Testing

/// Programs of the system that start others.
@Suite("A program of the system has children as the kernel has them", .timeLimit(.minutes(2)))
struct ChildProgramTests {
    /// The script has few variables, as on a host.
    private static let beginning = """
        os.environ.clear(); os.environ["PATH"] = "/usr/bin:/bin"
        def run(*arguments, **others):
            try:
                it = subprocess.run(*arguments, **others, capture_output=True, text=True)
                print(it.returncode, repr(it.stdout), repr(it.stderr))
            except Exception as error: print(type(error).__name__)
        def python(script): return [sys.executable or "/usr/bin/python3", "-c", script]

        """

    private func expectSame(_ script: String, location: SourceLocation = #_sourceLocation) throws {
        try KernelScript.expectSame(Self.beginning + script, location: location)
    }

    @Test("with pipes, variables, a directory, a mask, and a status")
    func children() throws {
        try expectSame(
            """
            run(["echo", "hello"]); run(["cat"], input="to be copied"); run(["sh", "-c", "exit 7"])
            run("echo a; echo b >&2; exit 3", shell=True); run("cat no-such-file 2>/dev/null || echo failed", shell=True)
            run(["no-such-program"]); put("plain", "x"); run(["./plain"])
            put("script", "#!/usr/bin/env python3\\nimport sys; print(sys.argv)"); os.chmod("script", 0o755); run(["./script", "one", "two"])
            put("broken", "x"); os.chmod("broken", 0o755); run(["./broken"])
            run(["/bin/sh", "-c", "echo $A, $B, $PATH"], env={"A": "1", "B": "two words", "PATH": ""}); os.mkdir("folder"); run(["touch", "x"], cwd="folder"); print(os.listdir("folder"))
            run(["pwd"], cwd="no-such-folder"); run(["sh", "-c", "umask"], umask=0o27); os.umask(0o77); run(["sh", "-c", "umask"])
            run(python("import os; print(os.getsid(0) == os.getpid() == os.getpgrp())"), start_new_session=True)
            run(python("import os; print(os.getppid() != os.getpid(), os.getpgrp() != os.getpid())"))
            start, end = os.pipe(); os.set_inheritable(end, True)
            run(python(f"import os; os.write({end}, b'kept')"), pass_fds=[end]); print(os.read(start, 10))
            run(python(f"import os; os.write({end}, b'lost')"))
            print(os.get_inheritable(end), os.get_inheritable(start))
            with open("output", "w") as file: subprocess.run(["echo", "into a file"], stdout=file); print(got("output"))
            with open("output", "a") as file: subprocess.run("echo more; echo again", shell=True, stdout=file); print(got("output"))
            run(python("import sys; print(sys.stdin.read())"), stdin=subprocess.DEVNULL)
            run(["sh", "-c", "exec echo $0 $1", "a", "b"]); run(python("import os; os.execvp('echo', ['echo', 'in place'])"))
            print(os.waitstatus_to_exitcode(os.system("exit 4")), os.popen("echo popen").read())
            it = os.posix_spawn("/usr/bin/echo", ["echo", "spawned"], {}, file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, "spawn", os.O_CREAT | os.O_WRONLY, 0o600), (os.POSIX_SPAWN_DUP2, 1, 2)])
            print(os.waitpid(it, 0)[1], got("spawn"))
            told("missing", os.posix_spawn, "/none", ["none"], {})
            """)
    }

    @Test("with signals, waits, limits of time, and descriptors of processes")
    func ends() throws {
        try expectSame(
            """
            def sleeper(): return subprocess.Popen(["sleep", "30"])
            one = sleeper(); print(one.poll(), os.waitpid(one.pid, os.WNOHANG)); one.terminate(); print(one.wait())
            two = sleeper(); two.kill(); print(two.wait(), two.poll())
            try: subprocess.run(["sleep", "30"], timeout=0.2)
            except subprocess.TimeoutExpired: print("too long")
            told("no child", os.wait); told("not a child", os.waitpid, os.getpid(), 0)
            count = []; signal.signal(signal.SIGCHLD, lambda *_: count.append(1))
            subprocess.run(["true"]); time.sleep(0.1); print(len(count)); signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            three = subprocess.Popen(["sh", "-c", "exit 9"]); it = os.waitid(os.P_PID, three.pid, os.WEXITED | os.WNOWAIT)
            print(it.si_pid == three.pid, it.si_status, it.si_code, os.wait()[1])
            four = sleeper(); ends = os.pidfd_open(four.pid); signal.pidfd_send_signal(ends, signal.SIGUSR1)
            import select; wait = select.poll(); wait.register(ends, select.POLLIN); print([event for _, event in wait.poll()])
            it = os.waitid(os.P_PIDFD, ends, os.WEXITED); print(it.si_status, it.si_code)
            told("gone", signal.pidfd_send_signal, ends, 0)
            five = subprocess.Popen(["sleep", "30"], start_new_session=True); os.killpg(five.pid, 15); print(five.wait())
            six = subprocess.Popen(["sh", "-c", "kill -9 $$"]); print(six.wait())
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            print(subprocess.run(["sh", "-c", "kill -USR2 $$; echo ignored"], stdout=subprocess.PIPE).stdout)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN); seven = os.posix_spawn("/usr/bin/true", ["true"], {})
            told("reaped", os.waitpid, seven, 0); signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            eight = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for line in "a", "b": eight.stdin.write(line + "\\n"); eight.stdin.flush(); print(eight.stdout.readline())
            eight.stdin.close(); print(eight.wait())
            nine = subprocess.Popen(["echo", "x"], stdout=subprocess.PIPE)
            print(subprocess.run(["cat"], stdin=nine.stdout, stdout=subprocess.PIPE).stdout, nine.wait())
            import asyncio
            async def child(number):
                it = await asyncio.create_subprocess_exec("sh", "-c", f"sleep 0.{number}; exit {number}", stdout=subprocess.PIPE)
                await it.communicate(); return it.returncode
            async def main(): print(await asyncio.gather(*(child(number) for number in range(1, 5))))
            asyncio.run(main())
            from concurrent.futures import ThreadPoolExecutor
            with ThreadPoolExecutor(4) as pool: print(list(pool.map(lambda n: subprocess.run(["sh", "-c", f"exit {n}"]).returncode, range(8))))
            """)
    }

    @Test("with memory of their own, by fork, as shells make them for pipes")
    func copies() throws {
        try expectSame(
            """
            sys.stdout.flush(); parent = os.getpid(); value = [1]
            child = os.fork()
            if child == 0:
                value[0] = 2; print("child", value, os.getppid() == parent, os.getpid() != parent); os._exit(3)
            it, status = os.waitpid(child, 0); print(it == child, os.waitstatus_to_exitcode(status), value)
            start, end = os.pipe(); rows = []
            for number in range(3):
                if os.fork() == 0:
                    os.close(start); time.sleep(0.1 * number); os.write(end, f"{number} ".encode()); os._exit(number)
            os.close(end)
            while more := os.read(start, 100): rows.append(more)
            print(b"".join(rows), sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(3)))
            run("echo one two | tr a-z A-Z | cat", shell=True); run("(exit 5)", shell=True); run("echo $(echo in | cat) out", shell=True)
            run(["bash", "-c", "for i in 3 1 2; do echo $i; done | sort | tail -2; x=$(expr 2 + 3); echo $x; sleep 0.1 & wait; echo ${PIPESTATUS[0]}"])
            put("f", "text" * 100); run(["tar", "-czf", "f.tgz", "f"]); run("tar -xzOf f.tgz | wc -c", shell=True)
            run(["pwd"], preexec_fn=lambda: os.chdir("/"))
            def work(): time.sleep(0.05)
            thread = threading.Thread(target=work); thread.start()
            child = os.fork()
            if child == 0: print("after threads", threading.active_count()); os._exit(0)
            print(os.waitpid(child, 0)[1]); thread.join()
            child = os.fork()
            if child == 0: time.sleep(30); os._exit(0)
            os.kill(child, signal.SIGTERM); print(os.waitpid(child, 0)[1])
            child = os.fork()
            if child == 0:
                os.setsid()
                if os.fork() == 0: time.sleep(0.2); put("daemon", "lives"); os._exit(0)
                os._exit(0)
            os.waitpid(child, 0); time.sleep(1); print(got("daemon"))
            import random
            child = os.fork(); first = os.urandom(8)
            if child == 0: os._exit(0)
            os.waitpid(child, 0)
            os.execvp("sh", ["sh", "-c", "echo end | cat"])
            """)
    }

    @Test("on its host, which a crash ends with it, and the same in each run")
    func host() {
        let script = """
            import os, random, subprocess, sys, time
            if os.fork() == 0:
                print("copy", os.urandom(4).hex(), time.monotonic()); time.sleep(3000); os._exit(0)
            subprocess.Popen(["sh", "-c", "sleep 5; echo first"])
            other = subprocess.Popen(["/usr/bin/python3", "-c", "import os, random; print(random.random(), os.urandom(4).hex())"])
            other.wait()
            subprocess.Popen(["/bin/service", "argument"])
            subprocess.Popen(["sleep", "1000"])
            time.sleep(2000)
            """
        let traces = (0..<2).map { _ in
            withSimulation(seed: 3, traced: true) { simulation in
                let host = SimulatedNetwork(simulation).addProgram(
                    "host", at: ProgramTests.python, arguments: ["-u", "-c", script])
                host.install(program: "/bin/service") { process in
                    process.print("\(process.arguments)")
                    process.exit(0)
                }
                simulation.advance(by: .seconds(10))
                let lines = ProgramTests.output(of: "host", simulation)
                #expect(lines.count == 4 && lines.last == "first" && lines.contains("[\"argument\"]\n"), "\(lines)")
                #expect(host.processes.filter { !$0.isZombie }.map(\.command.last) == [nil, nil, "1000"])
                host.crash()
                simulation.advance(by: .seconds(1_000))
                #expect(host.processes.isEmpty && simulation.escapes == [])
                return simulation.trace
            }
        }
        #expect(traces[0] == traces[1])
    }
}

extension ChildProgramTests {
    @Test(
        "saves with redis-server in the background",
        .enabled(if: access("/usr/bin/redis-server", X_OK) == 0 && access("/usr/bin/redis-cli", X_OK) == 0))
    func redis() {
        withSimulation(seed: 1, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            let server = network.addProgram(
                "server", at: "/usr/bin/redis-server",
                arguments: ["--save", "", "--dir", "/data", "--protected-mode", "no"])
            simulation.advance(by: .seconds(1))
            for (number, words) in [["set", "key", "value"], ["bgsave"], ["lastsave"]].enumerated() {
                network.addProgram("client \(number)", at: "/usr/bin/redis-cli", arguments: ["-h", "server"] + words)
                simulation.advance(by: .seconds(5))
            }
            #expect(ProgramTests.output(of: "client 1", simulation) == ["Background saving started"])
            #expect(server.disk.contents(of: "/data/dump.rdb")?.starts(with: "REDIS".utf8) == true)
            #expect(server.processes.count == 1 && simulation.escapes == [], "\(simulation.escapes)")
        }
    }
}

/// Descriptors that programs pass on over Unix sockets.
extension ChildProgramTests {
    @Test("passes descriptors on over Unix sockets, in itself and to others, and tells who has sent")
    func descriptors() throws {
        try expectSame(
            """
            import array, socket, struct
            # The bytes may come in pieces.
            def take(reader, count, most):
                data, numbers, flags = b"", [], 0
                while len(data) < count:
                    more, found, flag, _ = socket.recv_fds(reader, count - len(data), most)
                    data, numbers, flags = data + more, numbers + list(found), flags | flag
                return data, numbers, bool(flags & socket.MSG_CTRUNC)
            one, other = socket.socketpair(); put("file", "content"); start, end = os.pipe()
            file = os.open("file", os.O_RDONLY); socket.send_fds(one, [b"x"], [file, end]); os.close(file); os.close(end)
            data, numbers, cut = take(other, 1, 2); print(data, len(numbers), cut)
            print(os.read(numbers[0], 100), os.write(numbers[1], b"to the pipe"), os.read(start, 100))
            print([os.get_inheritable(number) for number in numbers]); os.close(numbers[1]); print(os.read(start, 1))
            start, end = os.pipe(); one.send(b"before"); socket.send_fds(one, [b"with"], [end]); one.send(b"after"); os.close(end)
            data, numbers, cut = take(other, 15, 1); print(data, len(numbers), cut)
            socket.send_fds(one, [b"lost"], numbers); os.close(numbers[0]); print(other.recv(1), os.read(start, 1)); take(other, 3, 1)
            start, end = os.pipe(); socket.send_fds(one, [b"cut"], [end, end, end]); os.close(end)
            data, numbers, cut = take(other, 3, 1); print(data, len(numbers) < 3, cut)
            for number in numbers: os.close(number)
            print(os.read(start, 1)); told("closed", socket.send_fds, one, [b"x"], [999])
            start, end = os.pipe(); socket.send_fds(one, [b"unread"], [end]); os.close(end); other.close(); one.close(); print(os.read(start, 1))
            server = socket.socket(socket.AF_UNIX); server.bind("socket"); server.listen()
            print(stat.S_ISSOCK(os.stat("socket").st_mode))
            script = '''import os, socket
            client = socket.socket(socket.AF_UNIX); client.connect("socket"); start, end = os.pipe(); client.recv(1)
            socket.send_fds(client, [b"h"], [start]); os.write(end, b"through the pipe"); client.recv(1); print("done")'''
            child = subprocess.Popen(python(script)); client, _ = server.accept()
            number, user, group = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            print(number == child.pid, user == os.getuid(), group == os.getgid())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1); client.send(b"!")
            data, control, flags, _ = client.recvmsg(100, 1000)
            print(data, flags, sorted((level, kind, len(bytes)) for level, kind, bytes in control))
            facts = {kind: bytes for _, kind, bytes in control}
            print(struct.unpack("3i", facts[socket.SCM_CREDENTIALS])[0] == child.pid)
            print(os.read(array.array("i", facts[socket.SCM_RIGHTS])[0], 100)); client.send(b"!"); print(child.wait())
            """)
    }
}
