// error: 'moved' consumed more than once
import RunLoopKit
import RunLoopUnix

func split(_ connection: Connection, to loop: RunLoop.Remote) {
    connection.move(to: loop) { loop, moved in
        try? Connection(adopting: moved, on: loop).start()
        try? Connection(adopting: moved, on: loop).start()
    }
}
