import Glibc

/// Whether a sanitizer keeps freed memory, so that memory use cannot be judged.
package let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

/// Resident memory, in bytes, without memory that the allocator could give back.
package func residentBytes() -> Int {
    _ = allocatorFunction("malloc_trim", as: (@convention(c) (Int) -> Int32).self)?(0)
    return Int(contents(of: "/proc/self/statm").split(separator: " ")[1])! * sysconf(Int32(_SC_PAGESIZE))
}

/// From now on memory of 128 KiB and more leaves the process as it is freed. Usually the allocator keeps the last of a
/// thread's, up to 64 MiB, and `residentBytes` counts it. For a process of its own.
package func giveLargeMemoryBackAtOnce() {
    let mmapThreshold: Int32 = -3
    _ = allocatorFunction("mallopt", as: (@convention(c) (Int32, Int32) -> Int32).self)?(mmapThreshold, 128 << 10)
}

/// Swift's Glibc module lacks them.
private func allocatorFunction<Function>(_ name: String, as: Function.Type) -> Function? {
    dlsym(nil, name).map { unsafeBitCast($0, to: Function.self) }
}
