// A server with tasks, in a program that only runs its loop. The closure of the server may use the program's variables,
// because both belong to the main actor, which the loop serves for it.

import RunLoopKit
import RunLoopUnix

let loop = RunLoop.main
var greeted = 0
let server = Server(on: loop) { client, _ in
    for try await name in client.lines(upTo: 80) {
        greeted += 1
        try await client.write("hello, \(name), you are number \(greeted)\n")
    }
}
let address = try server.listen(on: Endpoint("127.0.0.1", port: 0))

for name in ["Ada", "Grace"] {
    Connection.connect(to: address, on: loop) { connection, bytes in
        print(bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }, terminator: "")
        connection.finish()
        return bytes.count
    } completion: { result in
        do {
            let connection = try result.get()
            connection.closeHandler = { _, _ in if greeted == 2 { server.shutDown() } }
            try connection.start()
            connection.write("\(name)\n")
        } catch { print(error) }
    }
}
loop.run()  // until the server has shut down
