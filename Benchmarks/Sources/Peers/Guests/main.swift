// The processor time of an event, served by a host's own means and by a guest; and of GLib's sources in a run loop.
//
//   GuestsPeer epoll|libuv|glib|glib-in-ours[,guest] guest-idle|guest-fire|guest-echo|guest-descriptor EVENTS 0
import Glibc
import Harness
import RunLoopKit

/// The events so far.
var count = 0

/// Makes a pipe with a byte that is never read.
func readyPipe() -> Int32 {
    var ends: [Int32] = [-1, -1]
    precondition(pipe(&ends) == 0 && write(ends[1], "x", 1) == 1, "no pipe")
    return ends[0]
}

/// Makes one end of a pair of sockets, and a handler that receives its byte and sends it again.
func echo() -> (descriptor: Int32, handler: () -> Void) {
    var ends: [Int32] = [-1, -1]
    precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0, "no sockets")
    let (here, there) = (ends[0], ends[1])
    _ = write(there, "x", 1)
    return (
        here,
        {
            var byte: UInt8 = 0
            _ = read(here, &byte, 1)
            _ = write(there, &byte, 1)
            count += 1
        }
    )
}

/// Gives the work to the host, or to the loop that is its guest.
func begin(_ work: String, _ host: any Worker, inGuest: Bool) throws {
    let loop = RunLoop.current
    func watch(_ descriptor: Int32, _ handler: @escaping () -> Void) throws {
        guard inGuest else { return host.watch(descriptor, handler) }
        let source = DescriptorSource(fileDescriptor: descriptor, events: .readable) { _, _ in handler() }
        try loop.add(source, forMode: .default)
    }
    switch work {
    case "guest-fire" where inGuest:
        loop.add(Timer(timeInterval: .milliseconds(1), repeats: true) { _ in count += 1 }, forMode: .default)
    case "guest-fire": host.tick { count += 1 }
    case "guest-descriptor": try watch(readyPipe()) { count += 1 }
    case "guest-echo":
        let (descriptor, handler) = echo()
        try watch(descriptor, handler)
    default:
        host.watch(readyPipe()) { count += 1 }
        loop.perform(afterDelay: .seconds(3600)) {}
    }
    if inGuest { try host.add(loop.makeGuest()) }
}

let hosts: [Substring: any Worker.Type] = [
    "epoll": EpollWorker.self, "libuv": LibuvWorker.self, "glib": GLibWorker.self, "glib-in-ours": RunLoopWorker.self,
]
let (form, work) = (CommandLine.arguments[1].split(separator: ","), CommandLine.arguments[2])
let events = Int(CommandLine.arguments[3])!
if form[0] == "glib-in-ours" && work == "guest-idle" {
    print("not applicable")
    exit(0)
}
let host = hosts[form[0]]!.init()
try begin(work, host, inGuest: form.count == 2)
var least = Double.infinity
for _ in 0..<7 {
    let (begin, start) = (count, cpu_ns())
    while count < begin + events { host.turn() }
    least = min(least, Double(cpu_ns() - start) / Double(count - begin))
}
harness_emit("each", least, "ns")
