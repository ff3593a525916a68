import Glibc

/// Lets this process open `count` more descriptors than it has, for as long as it lives.
package func leaveDescriptors(_ count: Int32) {
    // Free numbers below the ones in use would allow more.
    var lowest = dup(0)
    while true {
        let next = dup(0)
        guard next == lowest + 1 else {
            lowest = next
            continue
        }
        let further = (0..<64).map { _ in dup(0) }
        guard further.last == next + 64 else {
            lowest = further.last!
            continue
        }
        for descriptor in further { close(descriptor) }
        close(next)
        break
    }
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = rlim_t(lowest + 1 + count)
    precondition(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
}

/// Lets this process start no further thread: each would have a stack of 64 TB. A limit of threads does not hold for
/// root.
package func leaveNoThread() {
    let attributes = UnsafeMutablePointer<pthread_attr_t>.allocate(capacity: 1)
    defer { attributes.deallocate() }
    pthread_attr_init(attributes)
    precondition(pthread_attr_setstacksize(attributes, 1 << 46) == 0)
    // Swift's Glibc module hides it.
    let setDefault = unsafeBitCast(
        dlsym(nil, "pthread_setattr_default_np"), to: (@convention(c) (UnsafeRawPointer) -> Int32).self)
    precondition(setDefault(attributes) == 0)
}
