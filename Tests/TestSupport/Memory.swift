import Glibc

/// Whether what is freed is kept, and memory therefore not to be judged.
package let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

/// Resident memory, in bytes, without what the allocator could give back.
package func residentBytes() -> Int {
    // Swift's Glibc module lacks it.
    typealias Trim = @convention(c) (Int) -> Int32
    if let address = dlsym(nil, "malloc_trim") { _ = unsafeBitCast(address, to: Trim.self)(0) }
    return Int(contents(of: "/proc/self/statm").split(separator: " ")[1])! * sysconf(Int32(_SC_PAGESIZE))
}
