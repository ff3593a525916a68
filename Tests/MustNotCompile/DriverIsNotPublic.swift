// error: 'driver' is inaccessible due to '@_spi' protection level
import RunLoopKit

func driver(of loop: RunLoop) -> Any {
    loop.driver
}
