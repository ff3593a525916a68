// error: 'Mine' cannot be constructed because it has no accessible initializers
import RunLoopKit

class Mine: RunLoop.Source {}

func make() -> RunLoop.Source {
    Mine()
}
