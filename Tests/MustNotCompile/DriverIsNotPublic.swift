// error: 'driver' is inaccessible due to 'package' protection level
import RunLoopKit

func driver(of loop: RunLoop) -> Any {
    loop.driver
}
