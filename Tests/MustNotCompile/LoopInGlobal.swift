// error: XX
import RunLoopKit

func keep(loop: RunLoop) {
    Shared.loop = loop
}

enum Shared {
    static var loop: RunLoop?
}
