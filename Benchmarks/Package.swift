// swift-tools-version: 6.2

// A package of its own, so that users of RunLoopKit do not get the peers.

import PackageDescription

/// Returns the target of a measured loop: an executable on the shared harness.
// In language mode 5, because in 6 each closure of a `main.swift` that C calls asks the runtime whether it is on the
// main actor. This is not a cost of the loop.
func peer(_ name: String, _ dependencies: Target.Dependency..., libraries: [String] = []) -> Target {
    .executableTarget(
        name: "\(name)Peer", dependencies: ["Harness"] + dependencies, path: "Sources/Peers/\(name)",
        swiftSettings: [.swiftLanguageMode(.v5)], linkerSettings: libraries.map { .linkedLibrary($0) })
}

let package = Package(
    name: "Benchmarks",
    dependencies: [
        .package(name: "RunLoopKit", path: "..", traits: ["Adapters"]),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.92.0"),
        .package(url: "https://github.com/apple/swift-nio-http2.git", from: "1.38.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.30.0"),
    ],
    targets: [
        // The workloads, the same for every peer.
        .target(name: "Harness"),
        // The workloads of Swift concurrency, for the peers in Swift.
        .target(name: "Tasks", dependencies: ["Harness"]),

        // Runs all peers, and makes tables.
        .executableTarget(
            name: "bench",
            dependencies: ["Commands", .product(name: "ArgumentParser", package: "swift-argument-parser")]),
        .target(name: "Commands"),

        // Compares costs, as counted by callgrind, with a file.
        .executableTarget(name: "CompareCosts", dependencies: ["Commands"]),
        .executableTarget(
            name: "Costs",
            dependencies: [
                .product(name: "RunLoopKit", package: "RunLoopKit"),
                .product(name: "RunLoopNIO", package: "RunLoopKit"),
                .product(name: "RunLoopSimulation", package: "RunLoopKit"),
                .product(name: "RunLoopUnix", package: "RunLoopKit"),
                .product(name: "NIOCore", package: "swift-nio"),
            ]),

        .executableTarget(name: "Smallest", dependencies: [.product(name: "RunLoopKit", package: "RunLoopKit")]),

        peer(
            "RunLoopKit", "Tasks", .product(name: "RunLoopKit", package: "RunLoopKit"),
            .product(name: "RunLoopSimulation", package: "RunLoopKit")),
        peer("Floor"),
        peer("SwiftHeap"),
        peer("Libevent", libraries: ["event_core", "event_pthreads"]),
        peer("Libuv", libraries: ["uv"]),
        peer("Libev", libraries: ["ev"]),
        // The only one with headers outside the compiler's usual paths.
        .systemLibrary(name: "CGLibUnix", pkgConfig: "glib-2.0", providers: [.apt(["libglib2.0-dev"])]),
        peer("GLib", "CGLibUnix"),
        peer("SDEvent", libraries: ["systemd"]),
        peer("Dispatch", "Tasks"),
        peer("Foundation", "Tasks"),
        peer(
            "NIO", "Tasks", .product(name: "NIOCore", package: "swift-nio"),
            .product(name: "NIOPosix", package: "swift-nio"), .product(name: "NIOEmbedded", package: "swift-nio")),

        // Hosts of a run loop, with it as a guest and without.
        .systemLibrary(name: "CEpoll"),
        .systemLibrary(name: "CLibuv"),
        peer(
            "Guests", "CEpoll", "CGLibUnix", "CLibuv", .product(name: "RunLoopKit", package: "RunLoopKit"),
            .product(name: "RunLoopGLib", package: "RunLoopKit")),

        // Clients of servers with one thread and with more, and echo servers beside the example EchoServer.
        .executableTarget(name: "Load", path: "Sources/Threads/Load"),
        .executableTarget(
            name: "EchoFloor", path: "Sources/Threads/Floor", linkerSettings: [.linkedLibrary("pthread")]),

        // Handlers of SwiftNIO on both kinds of event loops.
        .executableTarget(
            name: "ProtocolServer",
            dependencies: [
                .product(name: "RunLoopHTTP", package: "RunLoopKit"),
                .product(name: "RunLoopKit", package: "RunLoopKit"),
                .product(name: "RunLoopNIO", package: "RunLoopKit"),
                .product(name: "RunLoopUnix", package: "RunLoopKit"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "NIOWebSocket", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
            ], path: "Sources/Protocols"),
        // A client of HTTP. Sources/HTTP also has servers and clients that this package does not build.
        .executableTarget(
            name: "AskRunLoopHTTP",
            dependencies: [
                .product(name: "RunLoopHTTP", package: "RunLoopKit"),
                .product(name: "RunLoopKit", package: "RunLoopKit"), .product(name: "NIOCore", package: "swift-nio"),
            ], path: "Sources/HTTP/RunLoopHTTP"),

        // Echo servers on streams, each as a user of that loop would write it, and their clients. Sources/Streams also
        // has servers that SwiftPM does not build.
        .executableTarget(
            name: "StreamLoad", path: "Sources/Streams/Load",
            linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]),
        .executableTarget(
            name: "RunLoopKitEcho",
            dependencies: [
                .product(name: "RunLoopKit", package: "RunLoopKit"),
                .product(name: "RunLoopTLS", package: "RunLoopKit"),
                .product(name: "RunLoopUnix", package: "RunLoopKit"),
            ], path: "Sources/Streams/RunLoopKit"),
        .executableTarget(
            name: "NIOEcho",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ], path: "Sources/Streams/NIO"),
        .executableTarget(
            name: "LibeventEcho", path: "Sources/Streams/Libevent",
            linkerSettings: ["event_core", "event_extra", "event_openssl", "ssl", "crypto"].map { .linkedLibrary($0) }),
        .executableTarget(
            name: "LibuvEcho", path: "Sources/Streams/Libuv", linkerSettings: [.linkedLibrary("uv")]),
    ],
    swiftLanguageModes: [.v6]
)
