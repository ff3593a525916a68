import Glibc
import Synchronization

/// A file that processes share: their meeting point, and the number of holders of something.
package struct SharedCounters {
    private enum Word: Int {
        case arrivals, turns, holders
    }

    private let words: UnsafeMutablePointer<Atomic<Int>>

    package init(_ path: String) {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        precondition(file >= 0 && ftruncate(file, 4_096) == 0)
        defer { close(file) }
        let memory = mmap(nil, 4_096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)!
        words = memory.bindMemory(to: Atomic<Int>.self, capacity: 3)
    }

    private func word(_ word: Word) -> UnsafeMutablePointer<Atomic<Int>> { words + word.rawValue }

    /// Waits until `count` processes are here.
    package func meet(_ count: Int) {
        let turn = word(.turns).pointee.load(ordering: .sequentiallyConsistent)
        if word(.arrivals).pointee.add(1, ordering: .sequentiallyConsistent).newValue == count {
            word(.arrivals).pointee.store(0, ordering: .sequentiallyConsistent)
            word(.turns).pointee.add(1, ordering: .sequentiallyConsistent)
        }
        var tries = 0
        while word(.turns).pointee.load(ordering: .sequentiallyConsistent) == turn {
            tries += 1
            precondition(tries < 100_000_000, "another process has gone")
            if tries > 100 { sched_yield() }
        }
    }

    package func addHolder() { word(.holders).pointee.add(1, ordering: .sequentiallyConsistent) }
    package func takeHolders() -> Int { word(.holders).pointee.exchange(0, ordering: .sequentiallyConsistent) }
    package var holders: Int { word(.holders).pointee.load(ordering: .sequentiallyConsistent) }
}
