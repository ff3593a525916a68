internal import CPrograms
internal import CShims
internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

/// The calls of a program on descriptors. They are those of the simulated process, which never wait; here they wait for
/// programs that want to.
extension SystemProgram {
    /// Answers a request of a thread.
    ///
    /// - Returns: the result for the thread; below zero, an error number.
    func answerDescriptor(_ request: Request) -> Int64 {
        let (_, second, third, _) = request.arguments
        switch request.kind {
        case rlk_request_adopt: return number(process.descriptors.add(AdoptedFile()))
        case rlk_request_socket: return openSocket(Int32(second), forDatagrams: third == 1)
        case rlk_request_pair: return openPair(request, isPipe: second == 0)
        case rlk_request_counter:
            let counter = EventCounter(UInt64(second & 0xffff_ffff), isSemaphore: third == 1)
            return number(process.descriptors.add(counter))
        case rlk_request_timer:
            return number(process.descriptors.add(TimerDescription(on: process.machine, rlk_clock(UInt32(second)))))
        case rlk_request_set: return number(process.descriptors.add(EventSet()))
        case rlk_request_poll: return poll(request)
        case rlk_request_close_range:
            let (first, last) = (descriptor(request.arguments.0), second)
            for number in process.descriptors.numbers where number >= first && self.number(number) <= last {
                process.close(number)
            }
            return 0
        case rlk_request_open, rlk_request_status, rlk_request_access, rlk_request_make_directory,
            rlk_request_make_link, rlk_request_read_link, rlk_request_add_name, rlk_request_set_times,
            rlk_request_truncate_path, rlk_request_remove, rlk_request_rename, rlk_request_permit, rlk_request_own,
            rlk_request_enter, rlk_request_directory:
            return answerPath(request)
        case rlk_request_sync_memory: return syncMemory(at: UInt(bitPattern: Int(request.arguments.0)), Int(second))
        default: break
        }
        guard let target = process.target(of: descriptor(request)) else { return -Int64(EBADF) }
        return answer(request, target)
    }

    private func answer(_ request: Request, _ target: OpenDescription) -> Int64 {
        let (_, second, third, fourth) = request.arguments
        let descriptor = descriptor(request)
        switch request.kind {
        case rlk_request_write: return write(request, target)
        case rlk_request_read: return read(request, target)
        case rlk_request_close: process.close(descriptor)
        case rlk_request_duplicate: return duplicate(target, as: Int(second), exactly: third == 1)
        case rlk_request_set_blocking: target.blocks = second == 1
        case rlk_request_flags: return Int64(target.access | (target.blocks ? 0 : O_NONBLOCK))
        case rlk_request_input:
            return target.inputCount.map(Int64.init) ?? -Int64(target is any SocketCalls ? EINVAL : ENOTTY)
        case rlk_request_bind:
            guard let address = request.address else { return -Int64(EINVAL) }
            return result(process.bind(descriptor, to: address))
        case rlk_request_listen: return result(process.listen(descriptor, backlog: Int32(clamping: second)))
        case rlk_request_accept: return accept(request, target)
        case rlk_request_connect: return connect(request, target)
        case rlk_request_shut_down:
            guard target is any SocketCalls else { return -Int64(ENOTSOCK) }
            guard 0...2 ~= second else { return -Int64(EINVAL) }
            if second != Int64(SHUT_RD) { process.endWriting(descriptor) }
            if second != Int64(SHUT_WR) { (target as? SimulatedSocket)?.endReading() }
        case rlk_request_name: return name(request, target, ofPeer: second == 1)
        case rlk_request_set_option: return setOption(target, descriptor, Int32(second), Int32(third), fourth)
        case rlk_request_option: return option(request, target, Int32(second), Int32(third))
        case rlk_request_set_timer, rlk_request_read_timer:
            guard let timer = target as? TimerDescription else { return -Int64(EINVAL) }
            withUnsafeBytes(of: timer.left) { request.set($0) }
            if request.kind == rlk_request_set_timer { timer.set(third, every: fourth, isDate: second == 1) }
        case rlk_request_change_set: return changeSet(request, target)
        case rlk_request_await_set: return awaitSet(request, target)
        default: return answerFile(request, target)
        }
        return 0
    }

    // MARK: Numbers

    /// Returns the process's descriptor for a number of the program; one that is never open for a number that is none.
    func descriptor(_ number: Int64) -> Int32 {
        0..<1 << 20 ~= number ? DescriptorTable.first + Int32(number) : .max
    }

    func descriptor(_ request: Request) -> Int32 { descriptor(request.arguments.0) }

    func number(_ descriptor: Int32) -> Int64 {
        descriptor < 0 ? -Int64(errno) : Int64(descriptor - DescriptorTable.first)
    }

    func result<Number: SignedInteger>(_ number: Number) -> Int64 { number < 0 ? -Int64(errno) : Int64(number) }

    private func duplicate(_ target: OpenDescription, as other: Int, exactly: Bool) -> Int64 {
        guard exactly else { return number(process.descriptors.add(target, from: other)) }
        guard process.descriptors.mayHave(other) else { return -Int64(EBADF) }
        let new = DescriptorTable.first + Int32(other)
        guard process.descriptors[new] !== target else { return Int64(other) }
        process.close(new)
        process.descriptors.set(target, at: other)
        return Int64(other)
    }

    // MARK: Bytes

    /// Makes a call, again and again until it can be done, if the descriptor blocks, or until the limit of its socket.
    private func blocking(
        _ request: Request, _ target: OpenDescription, for events: DescriptorEvents, _ flags: Int64,
        _ call: () -> Int64
    ) -> Int64 {
        let waits = target.blocks && flags & Int64(rlk_transfer_never_waits.rawValue) == 0
        let longest = (target as? BoundSocket).map { events == .readable ? $0.waits.input : $0.waits.output } ?? 0
        let end = process.machine.network.simulation.now + .nanoseconds(longest)
        while true {
            let result = call()
            guard waits, result == -Int64(EAGAIN) else { return result }
            // A target may be ready and yet refuse, as a stream with less room than a call needs.
            var mayTry = false
            let left = (end - process.machine.network.simulation.now).nanoseconds
            let waited = rest(request.slot, for: longest > 0 ? max(0, left) : -1, at: [target]) {
                defer { mayTry = true }
                return mayTry || !(target.readiness ?? events).isDisjoint(with: events)
            }
            guard waited == 0 else { return waited == -Int64(ETIMEDOUT) ? result : waited }
        }
    }

    /// Returns `true` if a call that is for sockets alone is made of something else.
    private func isMisused(_ target: OpenDescription, _ flags: Int64) -> Bool {
        flags & Int64(rlk_transfer_of_socket.rawValue) != 0 && !(target is any SocketCalls)
    }

    private func write(_ request: Request, _ target: OpenDescription) -> Int64 {
        guard !isMisused(target, request.arguments.1) else { return -Int64(ENOTSOCK) }
        var targets: [OpenDescription] = []
        if let reason = find(&targets, of: request, for: target) { return -Int64(reason) }
        var written = 0
        let result = blocking(request, target, for: .writable, request.arguments.1) {
            let rest = UnsafeRawBufferPointer(rebasing: request.bytes.dropFirst(written))
            let result = writeOnce(rest, request, target)
            if result > 0, !targets.isEmpty {
                (target as? SimulatedSocket)?.attach(targets, to: Int(result))
                targets = []
            }
            // A call that blocks returns when all is written.
            guard result > 0, target.blocks, written + Int(result) < request.count else { return result }
            written += Int(result)
            return -Int64(EAGAIN)
        }
        let isPart = result == -Int64(EAGAIN) || result == -Int64(EINTR)
        return written > 0 && (isPart || result >= 0) ? Int64(written) + max(0, result) : result
    }

    /// Finds the targets of descriptors that a message passes on.
    ///
    /// - Returns: the reason why it may not, or `nil`.
    private func find(
        _ targets: inout [OpenDescription], of request: Request, for socket: OpenDescription
    ) -> Int32? {
        for number in request.passedDescriptors {
            guard let target = process.descriptors[descriptor(Int64(number))] else { return EBADF }
            guard (socket as? SimulatedSocket)?.family == AF_UNIX, !(target is AdoptedFile) else {
                let words = "passes a descriptor that is the machine's, or not over a stream of a Unix socket"
                words.withCString { rlk_installed_calls().pointee.escape($0) }
                return EOPNOTSUPP
            }
            targets.append(target)
        }
        return nil
    }

    /// Gives a reader the descriptors that came with the bytes, and the sender if it has asked for that.
    private func passOn(to request: Request, from target: OpenDescription) {
        guard let socket = target as? SimulatedSocket, socket.family == AF_UNIX else { return }
        guard request.arguments.2 & Int64(rlk_transfer_takes_descriptors.rawValue) != 0 else {
            return socket.takeReceived { _ in }
        }
        let (headSize, numberSize, senderSize) = (16, 4, 32)
        var room = Int(request.arguments.3)
        if socket.option(SOL_SOCKET, SO_PASSCRED) ?? 0 != 0 {
            request.setSender(socket.peerOwner)
            room -= senderSize
        }
        socket.takeReceived { targets in
            let most = max(0, (room - headSize) / numberSize)
            let numbers = targets.prefix(most).map { process.descriptors.add($0) }.prefix { $0 >= 0 }
            request.set(descriptors: numbers.map { $0 - DescriptorTable.first }, isCut: numbers.count < targets.count)
        }
    }

    private func writeOnce(_ bytes: UnsafeRawBufferPointer, _ request: Request, _ target: OpenDescription) -> Int64 {
        if let stream = target as? StandardStream {
            printLines(of: bytes, to: stream)
            return Int64(bytes.count)
        }
        if let file = target as? OpenFile { return write(bytes, to: file, descriptor(request)) }
        guard target is any DatagramCalls else { return result(process.write(descriptor(request), bytes)) }
        var slot = DatagramSlot()
        slot.bytes = UnsafeMutableRawBufferPointer(mutating: bytes)
        slot.length = bytes.count
        slot.address = request.address ?? Endpoint()
        let sent = withUnsafeMutablePointer(to: &slot) {
            process.send(descriptor(request), UnsafeMutableBufferPointer(start: $0, count: 1), inSegments: false)
        }
        return sent < 0 ? -Int64(errno) : Int64(bytes.count)
    }

    private func read(_ request: Request, _ target: OpenDescription) -> Int64 {
        let (_, count, flags, _) = request.arguments
        func has(_ flag: rlk_transfer) -> Bool { flags & Int64(flag.rawValue) != 0 }
        guard !isMisused(target, flags) else { return -Int64(ENOTSOCK) }
        let room = request.room(Int(count))
        if let file = target as? OpenFile { return read(file, descriptor(request), into: room) }
        // A call that is for sockets alone waits for input even if it has no room for it.
        if room.isEmpty, !has(rlk_transfer_of_socket), target is any SocketCalls { return 0 }
        if has(rlk_transfer_keeps_input) {
            return blocking(request, target, for: .readable, flags) { result(target.peek(into: room)) }
        }
        if has(rlk_transfer_fills), target is SimulatedSocket { return fill(room, request, target) }
        return blocking(request, target, for: .readable, flags) {
            guard target is any DatagramCalls else {
                let count = result(process.read(descriptor(request), into: room))
                if count > 0 { passOn(to: request, from: target) }
                return count
            }
            var slot = DatagramSlot()
            slot.bytes = room
            let received = withUnsafeMutablePointer(to: &slot) {
                process.receive(
                    descriptor(request), into: UnsafeMutableBufferPointer(start: $0, count: 1), withFacts: false)
            }
            guard received > 0 else { return received < 0 ? -Int64(errno) : -Int64(EAGAIN) }
            request.set(slot.address)
            return Int64(min(slot.length, room.count))
        }
    }

    /// Reads until there is no more room, or no more to read.
    private func fill(
        _ room: UnsafeMutableRawBufferPointer, _ request: Request, _ target: OpenDescription
    ) -> Int64 {
        var count = 0
        let end = blocking(request, target, for: .readable, request.arguments.2) {
            repeat {
                let rest = UnsafeMutableRawBufferPointer(rebasing: room.dropFirst(count))
                let part = result(process.read(descriptor(request), into: rest))
                guard part > 0 else { return part }
                count += Int(part)
            } while count < room.count
            return 0
        }
        return count > 0 ? Int64(count) : end
    }

    // MARK: Sockets

    private func openSocket(_ family: Int32, forDatagrams isForDatagrams: Bool) -> Int64 {
        guard [AF_INET, AF_INET6, AF_UNIX].contains(family) else { return -Int64(EAFNOSUPPORT) }
        return number(isForDatagrams ? process.datagramSocket(family) : process.socket(family))
    }

    private func openPair(_ request: Request, isPipe: Bool) -> Int64 {
        let ends = isPipe ? process.pipe().map { ($0.reading, $0.writing) } : process.makePair()
        guard let ends, ends.0 >= 0, ends.1 >= 0 else { return -Int64(errno) }
        withUnsafeBytes(of: (ends.0 - DescriptorTable.first, ends.1 - DescriptorTable.first)) { request.set($0) }
        return 0
    }

    private func accept(_ request: Request, _ target: OpenDescription) -> Int64 {
        blocking(request, target, for: .readable, 0) {
            var peer = Endpoint()
            let connection = process.accept(descriptor(request), peer: &peer)
            if connection >= 0 { request.set(peer) }
            return number(connection)
        }
    }

    private func connect(_ request: Request, _ target: OpenDescription) -> Int64 {
        guard let address = request.address else { return -Int64(EINVAL) }
        let descriptor = descriptor(request)
        let first = result(process.connect(descriptor, to: address))
        // A call that a signal has interrupted may be made again.
        guard target.blocks, [-Int64(EINPROGRESS), -Int64(EALREADY)].contains(first) else { return first }
        let waited = rest(request.slot, for: -1, at: [target]) { target.readiness?.contains(.writable) == true }
        guard waited == 0 else { return waited }
        return -Int64(process.option(descriptor, SOL_SOCKET, SO_ERROR) ?? 0)
    }

    private func name(_ request: Request, _ target: OpenDescription, ofPeer isOfPeer: Bool) -> Int64 {
        guard let socket = target as? any SocketCalls else { return -Int64(ENOTSOCK) }
        guard let address = isOfPeer ? socket.connectedAddress : socket.localAddress else { return -Int64(ENOTCONN) }
        request.set(address)
        return 0
    }

    private func setOption(
        _ target: OpenDescription, _ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int64
    ) -> Int64 {
        guard target is any SocketCalls else { return -Int64(ENOTSOCK) }
        if (level, option) == (SOL_SOCKET, SO_LINGER) {
            if value == 0 { process.resetWhenClosed(descriptor) }
            return 0
        }
        if let socket = target as? BoundSocket, level == SOL_SOCKET, option == SO_RCVTIMEO || option == SO_SNDTIMEO {
            if option == SO_RCVTIMEO { socket.waits.input = value } else { socket.waits.output = value }
            return 0
        }
        return result(process.setOption(descriptor, level, option, Int32(truncatingIfNeeded: value)))
    }

    private func option(_ request: Request, _ target: OpenDescription, _ level: Int32, _ option: Int32) -> Int64 {
        guard let socket = target as? any SocketCalls else { return -Int64(ENOTSOCK) }
        if (level, option) == (SOL_SOCKET, SO_PEERCRED), let peer = (socket as? SimulatedSocket)?.peerOwner {
            withUnsafeBytes(of: peer) { request.set($0) }
            return 0
        }
        if let bound = target as? BoundSocket, level == SOL_SOCKET, option == SO_RCVTIMEO || option == SO_SNDTIMEO {
            let wait = option == SO_RCVTIMEO ? bound.waits.input : bound.waits.output
            let time = timeval(tv_sec: Int(wait / 1_000_000_000), tv_usec: Int(wait % 1_000_000_000 / 1_000))
            withUnsafeBytes(of: time) { request.set($0) }
            return 0
        }
        guard let value = socket.option(level, option) else { return -Int64(ENOPROTOOPT) }
        withUnsafeBytes(of: value) { request.set($0) }
        return 0
    }

    // MARK: Waits

    private func changeSet(_ request: Request, _ target: OpenDescription) -> Int64 {
        let (_, operation, number, _) = request.arguments
        guard let member = process.target(of: descriptor(number)) else { return -Int64(EBADF) }
        // A regular file is always ready, so nobody may wait for it.
        guard member.readiness != nil else { return -Int64(EPERM) }
        guard let set = target as? EventSet else { return -Int64(EINVAL) }
        let event = request.count == 0 ? rlk_set_event() : request.bytes.loadUnaligned(as: rlk_set_event.self)
        let change = rlk_set_operation(UInt32(truncatingIfNeeded: operation))
        return -Int64(set.change(change, Int32(number), member, event.events, event.data))
    }

    private func awaitSet(_ request: Request, _ target: OpenDescription) -> Int64 {
        let (_, most, length, _) = request.arguments
        guard let set = target as? EventSet, most > 0 else { return -Int64(EINVAL) }
        let waited = rest(request.slot, for: length, at: [set]) { set.readiness == .readable }
        guard waited != -Int64(EINTR) else { return waited }
        let events = set.take(Int(most))
        events.withUnsafeBytes { request.set($0) }
        return Int64(events.count)
    }

    private func poll(_ request: Request) -> Int64 {
        var requests = Array(request.bytes.bindMemory(to: pollfd.self))
        let targets = requests.map { $0.fd < 0 ? nil : process.target(of: descriptor(Int64($0.fd))) }
        // `select` hears of a failure or a hang-up only if it asks for that.
        let isSelect = request.arguments.2 == 1
        func look() -> Int {
            for index in requests.indices where requests[index].fd >= 0 {
                let asked = requests[index].events | (isSelect ? 0 : Int16(POLLERR | POLLHUP))
                requests[index].revents = targets[index].map { $0.pollEvents & asked } ?? Int16(POLLNVAL)
            }
            return requests.count { $0.revents != 0 }
        }
        let waited = rest(request.slot, for: request.arguments.1, at: targets.compactMap(\.self)) { look() > 0 }
        guard waited != -Int64(EINTR) else { return waited }
        let found = look()
        requests.withUnsafeBytes { request.set($0) }
        return Int64(found)
    }
}

/// A file of the machine's installation that a program reads itself.
private final class AdoptedFile: OpenDescription {}
