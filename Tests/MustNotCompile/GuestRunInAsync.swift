// error: instance method 'run' is unavailable from asynchronous contexts; a run loop blocks its thread; call this from the host's loop
import RunLoopKit

func serve(_ guest: RunLoop.Guest) async {
    guest.run()
}
