#if Adapters
internal import NIOCore
internal import RunLoopUnix

/// An option of a socket, with its value.
typealias SocketOption = (option: ChannelOptions.Types.SocketOption, value: SocketOptionValue)

extension SystemCalls {
    func set(_ option: SocketOption, of descriptor: Int32) {
        setOption(
            descriptor, option.option.optionLevel.rawValue, option.option.optionName.rawValue,
            Int32(truncatingIfNeeded: option.value))
    }

    func value(of option: ChannelOptions.Types.SocketOption, of descriptor: Int32) -> SocketOptionValue? {
        self.option(descriptor, option.optionLevel.rawValue, option.optionName.rawValue).map { SocketOptionValue($0) }
    }
}
#endif
