// error: XX
import RunLoopKit

func invalidateElsewhere(source: DescriptorSource) -> LoopThread {
    LoopThread { _ in source.invalidate() }
}
