// error: XX
import RunLoopKit

func driver(of loop: RunLoop) -> Any {
    loop.driver
}
