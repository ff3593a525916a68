package import RunLoopKit

/// Lets the loop make a pass, which serves ready items.
package nonisolated(nonsending) func pass(of loop: RunLoop) async {
    await withUnsafeContinuation { continuation in loop.perform(inModes: .common) { continuation.resume() } }
}
