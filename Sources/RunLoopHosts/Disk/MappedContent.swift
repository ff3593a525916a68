internal import CPrograms
internal import Glibc

/// The content of a file in memory that programs of the system have mapped, and may change without a call.
final class MappedContent {
    private var memory = rlk_mapped()

    /// - Returns: `nil` if the system has no more memory or descriptors.
    init?(_ content: [UInt8]) {
        memory.descriptor = -1
        guard setSize(content.count) else { return nil }
        show(content, from: 0)
    }

    deinit { rlk_unmap(&memory) }

    /// The descriptor of the memory, in the process of the simulation.
    var descriptor: Int32 { memory.descriptor }

    /// Makes the memory as long as the file.
    func setSize(_ size: Int) -> Bool { rlk_resize_mapped(&memory, size) == 0 }

    /// Shows programs bytes of the file.
    func show(_ bytes: some Collection<UInt8>, from offset: Int) {
        guard !bytes.isEmpty else { return }
        UnsafeMutableRawBufferPointer(start: memory.bytes + offset, count: bytes.count).copyBytes(from: bytes)
    }

    /// Returns the pages that programs have changed since a content, each with its offset.
    func changes(since content: [UInt8]) -> [(bytes: [UInt8], offset: Int)] {
        let size = min(content.count, memory.size)
        return content.withUnsafeBytes { content in
            stride(from: 0, to: size, by: 4_096).compactMap { offset in
                let page = UnsafeRawBufferPointer(start: memory.bytes + offset, count: min(4_096, size - offset))
                let isSame = memcmp(page.baseAddress!, content.baseAddress! + offset, page.count) == 0
                return isSame ? nil : (Array(page), offset)
            }
        }
    }
}
