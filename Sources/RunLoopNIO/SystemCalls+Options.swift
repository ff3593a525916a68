#if Adapters
internal import Glibc
internal import NIOCore
internal import RunLoopUnix

/// An option of a socket, with its value.
typealias SocketOption = (option: ChannelOptions.Types.SocketOption, value: SocketOptionValue)

extension SystemCalls {
    func set(_ option: SocketOption, of descriptor: Int32) throws(IOError) {
        let status = setOption(
            descriptor, option.option.optionLevel.rawValue, option.option.optionName.rawValue,
            Int32(truncatingIfNeeded: option.value))
        if status != 0 { throw IOError(errnoCode: errno, reason: "set an option of the socket") }
    }

    func value(of option: ChannelOptions.Types.SocketOption, of descriptor: Int32) -> SocketOptionValue? {
        self.option(descriptor, option.optionLevel.rawValue, option.optionName.rawValue).map { SocketOptionValue($0) }
    }
}
#endif
