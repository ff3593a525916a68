"""A client that sends whatever bytes an attack needs, over TCP or TLS, and looks at the daemon's process."""
import base64, json, re, select, socket, ssl, struct, subprocess, tempfile, time


class Daemon:
    """A process of the daemon, which ends at SIGTERM."""

    def __init__(self, program, threads, tls, limits, before=None, inside=None):
        self.program, self.threads, self.tls = program, threads, tls
        self.directory = tempfile.TemporaryDirectory()
        self.uploads = self.path("uploads")
        arguments = [
            program, "--port", "0", "--threads", str(threads), "--uploads", self.uploads, "--limits",
            self.path("limits"), "--drain", "5"]
        with open(self.path("limits"), "w") as file:
            json.dump(limits, file)
        if tls:
            arguments += ["--certificate", self.path("chain.pem"), "--key", self.path("key.pem")]
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                 "1", "-subj", "/CN=x", "-keyout", self.path("key.pem"), "-out", self.path("chain.pem")],
                check=True, capture_output=True)
        if before:
            before(self)
        with open(self.path("log"), "w") as log:
            self.process = subprocess.Popen(arguments, stderr=log, preexec_fn=inside)
        eventually(lambda: "listening on" in self.log or self.process.poll() is not None)

    def serves(self):
        """Expects that it has started."""
        line = re.search(r"listening on \S*:(\d+)\n", self.log)
        assert line, f"it does not start: {self.log}"
        self.port = int(line[1])
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"
        eventually(self.get).has(200)
        self.first_memory = self.memory
        return self

    def another(self, **options):
        """Starts one more, which may fail."""
        return Daemon(self.program, self.threads, self.tls, {}, **options)

    def ends(self, *statuses):
        status = self.process.wait(60)
        assert status in statuses, f"status {status}: {self.log[-1000:]}"

    def path(self, name):
        return f"{self.directory.name}/{name}"

    @property
    def log(self):
        with open(self.path("log"), errors="replace") as file:
            return file.read()

    @property
    def memory(self):
        """The most bytes that the process has had in memory."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) << 10

    def is_bounded(self):
        grown = self.memory - self.first_memory
        assert grown < 40 << 20, f"it grew by {grown >> 20} MB"

    def empties(self, but=0):
        """Waits until no other connections are open but some that the caller holds."""
        def is_empty():
            # While the server has too many connections, a further one is closed at once, or refused.
            answer = self.get("/health")
            return answer.status == 200 and json.loads(answer.body)["connections"] == 1 + but
        eventually(is_empty)

    def stop(self):
        """Expects that others are still served, that all connections end, and a clean end."""
        self.empties()
        self.is_bounded()
        self.process.terminate()
        self.ends(0)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def tcp(self, **options):
        return Client(self, None, **options)

    def http1(self, **options):
        return Client(self, "http/1.1", **options)

    def http2(self, settings=b"", **options):
        client = HTTP2(self, "h2", **options)
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, payload=settings))
        return client

    def get(self, path="/", **options):
        client = self.http1(**options)
        client.send(request(path, headers="host: x\r\nconnection: close\r\n"))
        return client.answer()


class Ended(Exception):
    """A connection has ended in place of what was expected."""


def eventually(condition):
    """Waits until a condition holds, and returns its value. A condition whose connection ends is tried again."""
    end, reason = time.monotonic() + 60, ""
    while True:
        try:
            if value := condition():
                return value
        except (OSError, Ended) as error:
            reason = f": {error}"
        assert time.monotonic() < end, "it does not come about" + reason
        time.sleep(0.01)


class Client:
    def __init__(self, daemon, protocol, source="127.0.0.1", room=None):
        self.daemon, self.left = daemon, b""
        self.socket = socket.socket()
        self.socket.settimeout(60)
        if room:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", daemon.port))
        if daemon.tls and protocol:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols([protocol])
            self.socket = context.wrap_socket(self.socket, suppress_ragged_eofs=True)

    def send(self, data):
        """Sends the bytes, and says whether the daemon took them."""
        try:
            self.socket.sendall(data)
            return True
        except (ConnectionError, ssl.SSLError):
            return False

    def close(self):
        self.socket.close()

    def pour(self, data, reads=True):
        """Sends the bytes again and again until the daemon closes, and keeps what it reads meanwhile."""
        taken, last, has_ended = 0, time.monotonic(), not reads
        waits = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
        self.socket.setblocking(False)
        try:
            while True:
                self.daemon.is_bounded()
                assert time.monotonic() - last < 60, f"it neither closes nor takes more than {taken} bytes"
                select.select([] if has_ended else [self.socket], [self.socket], [], 1)
                try:
                    while not has_ended:
                        more = self.socket.recv(1 << 16)
                        self.left, has_ended = self.left + more, not more
                except waits:
                    pass
                try:
                    taken += self.socket.send(data[taken % len(data):])
                    last = time.monotonic()
                except waits:
                    pass
        except (ConnectionError, ssl.SSLError):
            pass
        self.socket.settimeout(60)

    def receive(self, count=1 << 16):
        """Some bytes, or none at the end."""
        if self.left:
            data, self.left = self.left[:count], self.left[count:]
            return data
        try:
            return self.socket.recv(count)
        except (ConnectionError, ssl.SSLError):
            return b""

    def exactly(self, count):
        data = b""
        while len(data) < count and (more := self.receive(count - len(data))):
            data += more
        return data

    def until(self, mark):
        data = b""
        while mark not in data and (more := self.receive()):
            data += more
        begin, found, rest = data.partition(mark)
        self.left = rest + self.left
        return begin + found

    def to_end(self):
        data = b""
        while more := self.receive():
            data += more
        return data

    def answer(self, of_head=False):
        head = self.until(b"\r\n\r\n").decode()
        # The case of names means nothing.
        head = re.sub(r"\r\n[^:]+:", lambda name: name[0].lower(), head)
        if not head.endswith("\r\n\r\n"):
            raise Ended(f"{head!r} in place of an answer")
        length = 0 if of_head else int(re.search(r"content-length: (\d+)", head)[1])
        return Answer(int(head.split()[1]), head, self.exactly(length))

    def ends(self):
        """Expects the end, after nothing."""
        data = self.to_end()
        assert not data, f"it sends {data[:100]} before the end"

    def join(self):
        """Becomes a member of the chat."""
        self.send(opening())
        head = self.until(b"\r\n\r\n")
        assert b" 101 " in head, head
        return self

    def message(self):
        """The opcode and the bytes of the next message of the chat; nothing at the end."""
        head = self.exactly(2)
        if len(head) < 2:
            return None
        length = head[1] & 127
        if length == 126:
            length = struct.unpack(">H", self.exactly(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", self.exactly(8))[0]
        return head[0] & 15, self.exactly(length)

    def closes_with(self, code):
        while (message := self.message()) and message[0] != 8:
            pass
        assert message == (8, struct.pack(">H", code)), f"{message} in place of a close with {code}"
        self.ends()


class Answer:
    def __init__(self, status, head, body):
        self.status, self.head, self.body = status, head, body

    def has(self, status):
        assert self.status == status, f"{self.status} in place of {status}: {self.head!r}"
        return self


def request(path="/", method="GET", headers="host: x\r\n", body=""):
    return f"{method} {path} HTTP/1.1\r\n{headers}\r\n{body}".encode()


def opening(path="/chat", version=13):
    key = base64.b64encode(b"0123456789abcdef").decode()
    return request(path, headers=(
        "host: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        f"sec-websocket-version: {version}\r\nsec-websocket-key: {key}\r\n"))


def words(opcode, data=b"", first=0x80, masked=True):
    """A frame of WebSocket."""
    mask, key = (0x80, b"\0\0\0\0") if masked else (0, b"")
    length = bytes([mask | len(data)]) if len(data) < 126 else bytes([mask | 126]) + struct.pack(">H", len(data)) \
        if len(data) < 65536 else bytes([mask | 127]) + struct.pack(">Q", len(data))
    return bytes([first | opcode]) + length + key + data


DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
ENHANCE_YOUR_CALM = 11


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def head(method="GET", path="/", more=b""):
    """The head of a request, in literals."""
    def field(name, value):
        return bytes([name, len(value)]) + value.encode()
    return field(2, method) + field(4, path) + b"\x86" + field(1, "x") + more


class HTTP2(Client):
    def next(self):
        """The kind, the flags, the stream and the payload of the next frame; nothing at the end."""
        start = self.exactly(9)
        if len(start) < 9:
            return None
        payload = self.exactly(int.from_bytes(start[:3], "big"))
        return start[3], start[4], struct.unpack(">I", start[5:])[0], payload

    def frames(self):
        while found := self.next():
            yield found

    def first(self, wanted, of_stream=None):
        """The payload of the next frame of a kind."""
        for kind, _, stream, payload in self.frames():
            if kind == wanted and of_stream in (None, stream):
                return payload
        raise Ended(f"no frame of kind {wanted}")

    def upload(self, stream, count):
        """Sends so many bytes as the windows allow, or until the answer comes."""
        windows = {0: 65_535, stream: 65_535}
        while count > 0:
            part = min(count, 16_384, *windows.values())
            if part:
                self.send(frame(DATA, 0, stream, b"x" * part))
                windows, count = {number: room - part for number, room in windows.items()}, count - part
                continue
            kind, flags, number, payload = self.next()
            if kind == WINDOW:
                windows[number] += struct.unpack(">I", payload)[0]
            elif kind == HEADERS:
                self.left = frame(kind, flags, number, payload) + self.left
                return

    def status(self, stream):
        """The status of the answer."""
        block = self.first(HEADERS, stream)
        if block[0] & 0x80:
            return (200, 204, 206, 304, 400, 404, 500)[(block[0] & 0x7f) - 8]
        assert block[0] & 0x3f == 8, block
        value = block[2:2 + (block[1] & 0x7f)]
        if not block[1] & 0x80:
            return int(value)
        # The digits of Huffman's code for HPACK.
        bits, digits = "".join(f"{byte:08b}" for byte in value), ""
        while len(digits) < 3:
            short = bits[:2] == "00"
            digits += str(int(bits[:5], 2) if short else int(bits[:6], 2) - 22)
            bits = bits[5 if short else 6:]
        return int(digits)

    def goes_away(self, *errors):
        """Expects GOAWAY with one of these errors, or any but 0, and then the end."""
        found = [struct.unpack(">I", payload[4:8])[0] for kind, _, _, payload in self.frames() if kind == GOAWAY]
        assert found and (found[-1] in errors if errors else found[-1] > 0), f"GOAWAY with {found}"
