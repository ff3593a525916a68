// error: static property 'loop' is not concurrency-safe
import RunLoopKit

func keep(loop: RunLoop) {
    Shared.loop = loop
}

enum Shared {
    static var loop: RunLoop?
}
