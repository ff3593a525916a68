/// A dump on its way into a new file, which takes the place of the old one at the end.
final class Rewrite {
    /// The dump, which must receive each change.
    let dump = Dump()
    private let table: Table
    private let disk: DiskThread
    private let target: Target
    private let settle: (_ end: @escaping () -> Void) -> Void
    private let completion: (DiskThread.Outcome) -> Void

    /// The new file, for the disk's thread alone.
    private final class Target: @unchecked Sendable {
        let path: String
        let kind: Frame.Kind
        let installed: @Sendable (FrameFile) -> Void
        var file: FrameFile?

        init(_ path: String, _ kind: Frame.Kind, _ installed: @escaping @Sendable (FrameFile) -> Void) {
            self.path = path
            self.kind = kind
            self.installed = installed
        }

        func append(_ frame: [UInt8], then next: (FrameFile) throws(DiskError) -> Void) throws(DiskError) -> Int {
            do throws(DiskError) {
                let file = if let file { file } else { try FrameFile(replacing: path, kind) }
                self.file = file
                if !frame.isEmpty { try file.append(frame) }
                try next(file)
                return file.length
            } catch {
                file = nil
                throw error
            }
        }

        func install(_ file: FrameFile) throws(DiskError) {
            if kind == .snapshot { try file.appendEnd() }
            try file.install()
            installed(file)
        }
    }

    /// - Parameters:
    ///   - settle: called when all keys are on the disk; calls its argument, at once or later, to append the latest
    ///     changes and install the file.
    ///   - installed: called on the disk's thread when the file has taken its place.
    ///   - completion: called with the length of the file.
    init(
        _ path: String, _ kind: Frame.Kind, _ table: Table, _ disk: DiskThread,
        settle: @escaping (_ end: @escaping () -> Void) -> Void = { $0() },
        installed: @escaping @Sendable (FrameFile) -> Void = { _ in },
        then completion: @escaping (DiskThread.Outcome) -> Void
    ) {
        self.table = table
        self.disk = disk
        self.settle = settle
        self.completion = completion
        target = Target(path, kind, installed)
    }

    /// Begins the rewrite. Pass changes to ``dump`` from before this call.
    func begin() {
        step()
    }

    /// Writes one piece at a time: the loop serves other items in between, and memory holds no more than a piece. The
    /// long wait for the disk comes before the end, which is short.
    private func step() {
        let frame = dump.next(of: table)
        let isLast = dump.isComplete
        disk.perform { [target] () throws(DiskError) in
            try target.append(frame) { file throws(DiskError) in if isLast { try file.sync() } }
        } then: { [weak self] outcome in
            guard let self else { return }
            guard case .success = outcome else { return completion(outcome) }
            if isLast { settle { [weak self] in self?.end() } } else { step() }
        }
    }

    private func end() {
        let frame = dump.next(of: table)
        disk.perform { [target] () throws(DiskError) in
            try target.append(frame, then: target.install)
        } then: { [weak self] outcome in
            self?.completion(outcome)
        }
    }
}
