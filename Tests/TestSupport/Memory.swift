import Glibc

/// `true` if a sanitizer keeps freed memory, so that memory use cannot be judged.
package let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

/// Returns the resident memory, in bytes, without memory that the allocator could give back.
package func residentBytes() -> Int {
    _ = allocatorFunction("malloc_trim", as: (@convention(c) (Int) -> Int32).self)?(0)
    return Int(contents(of: "/proc/self/statm").split(separator: " ")[1])! * sysconf(Int32(_SC_PAGESIZE))
}

/// Makes the allocator return memory of 128 KiB and more to the system as it is freed. Usually it keeps a thread's last
/// such memory, up to 64 MiB, and `residentBytes` counts it. For a process of its own.
package func giveLargeMemoryBackAtOnce() {
    let mmapThreshold: Int32 = -3
    _ = allocatorFunction("mallopt", as: (@convention(c) (Int32, Int32) -> Int32).self)?(mmapThreshold, 128 << 10)
}

/// Returns a function that Swift's Glibc module lacks.
private func allocatorFunction<Function>(_ name: String, as: Function.Type) -> Function? {
    dlsym(nil, name).map { unsafeBitCast($0, to: Function.self) }
}
