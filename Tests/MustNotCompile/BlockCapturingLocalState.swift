// error: mutation of captured var 'count' in concurrently-executing code
import RunLoopKit

func countElsewhere(remote: RunLoop.Remote) -> Int {
    var count = 0
    remote.perform { _ in count += 1 }
    return count
}
