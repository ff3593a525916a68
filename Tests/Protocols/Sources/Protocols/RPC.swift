import GRPCCore
import GRPCNIOTransportHTTP2
import NIOCore
import RunLoopNIO

/// Text as a message.
struct TextCoding: MessageSerializer, MessageDeserializer {
    func serialize<Bytes: GRPCContiguousBytes>(_ message: String) throws -> Bytes { Bytes(message.utf8) }

    func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> String {
        bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
}

/// Answers each message with itself.
struct EchoService: RegistrableRPCService {
    static let echo = MethodDescriptor(fullyQualifiedService: "test.Echo", method: "Echo")

    func registerMethods<Transport: ServerTransport>(with router: inout RPCRouter<Transport>) {
        router.registerHandler(forMethod: Self.echo, deserializer: TextCoding(), serializer: TextCoding()) {
            request, _ in
            StreamingServerResponse { writer in
                for try await message in request.messages { try await writer.write("echo \(message)") }
                return [:]
            }
        }
    }
}

/// Listens on a run loop for gRPC.
struct RunLoopListener: HTTP2ServerTransport.ListenerFactory {
    let eventLoopGroup: any EventLoopGroup
    let address: NIOCore.SocketAddress
    let bound: @Sendable (NIOCore.SocketAddress) -> Void

    func makeListeningChannel(
        listenerConfigurator: HTTP2ServerTransport.ListenerConfigurator,
        connectionConfigurator: HTTP2ServerTransport.ConnectionConfigurator
    ) async throws -> NIOAsyncChannel<HTTP2ServerTransport.ConnectionConfigurator.ConnectionChannel, Never> {
        let channel = try await RunLoopServerBootstrap(group: eventLoopGroup)
            .serverChannelInitializer { listenerConfigurator.configure(channel: $0) }
            .bind(to: address) { connectionConfigurator.configure(channel: $0, tls: .none) }
        if let address = channel.channel.localAddress { bound(address) }
        return channel
    }
}

/// Calls a service: one message, then many in a stream.
func call(
    _ address: NIOCore.SocketAddress, on group: any EventLoopGroup, _ log: @Sendable (String) -> Void
) async throws {
    let transport = try await HTTP2ClientTransport.WrappedChannel.wrapping { configure in
        try await RunLoopClientBootstrap(group: group).connect(to: address) { configure($0) }
    }
    let client = GRPCClient(transport: transport)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
        tasks.addTask { try await client.runConnections() }
        let one = try await client.unary(
            request: ClientRequest(message: "hello"), descriptor: EchoService.echo, serializer: TextCoding(),
            deserializer: TextCoding(), options: .defaults
        ) { try $0.message }
        log("one: \(one)")
        let count = try await client.bidirectionalStreaming(
            request: StreamingClientRequest<String> { writer in
                for number in 0..<100 { try await writer.write("\(number)") }
            }, descriptor: EchoService.echo, serializer: TextCoding(), deserializer: TextCoding(), options: .defaults
        ) { response in
            var count = 0
            for try await message in response.messages {
                precondition(message == "echo \(count)", message)
                count += 1
            }
            return count
        }
        log("stream: \(count)")
        client.beginGracefulShutdown()
        try await tasks.waitForAll()
    }
}
