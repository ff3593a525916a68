// error: capture of 'source' with non-Sendable type 'DescriptorSource' in a '@Sendable' closure
import RunLoopKit

func invalidateElsewhere(source: DescriptorSource) -> LoopThread {
    LoopThread { _ in source.invalidate() }
}
