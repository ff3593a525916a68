extension SystemCalls {
    func set<Value>(_ option: SocketOption<Value>, of descriptor: Int32, to value: Value) throws(SystemError) {
        guard setOption(descriptor, option.level, option.name, option.encode(value)) == 0 else {
            throw .last("set an option of the socket")
        }
    }

    func value<Value>(of option: SocketOption<Value>, of descriptor: Int32) throws(SystemError) -> Value {
        guard let value = self.option(descriptor, option.level, option.name) else {
            throw .last("read an option of the socket")
        }
        return option.decode(value)
    }
}
