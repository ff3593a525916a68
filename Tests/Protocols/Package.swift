// swift-tools-version: 6.2

// Other people's protocols on the channels of RunLoopNIO: a package of its own, because RunLoopKit itself needs none of them.

import PackageDescription

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

func ours(_ name: String) -> Target.Dependency { .product(name: name, package: "RunLoopKit") }

let package = Package(
    name: "Protocols",
    dependencies: [
        .package(name: "RunLoopKit", path: "../..", traits: ["Adapters"]),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.92.0"),
        .package(url: "https://github.com/grpc/grpc-swift-2.git", from: "2.4.0"),
        .package(url: "https://github.com/grpc/grpc-swift-nio-transport.git", from: "2.9.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.25.0"),
    ],
    targets: [
        .executableTarget(
            name: "Protocols",
            dependencies: [
                ours("RunLoopKit"), ours("RunLoopUnix"), ours("RunLoopNIO"), ours("RunLoopTLS"),
                ours("RunLoopSimulation"),
                ours("RunLoopHosts"), ours("RunLoopTesting"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "GRPCCore", package: "grpc-swift-2"),
                .product(name: "GRPCNIOTransportHTTP2", package: "grpc-swift-nio-transport"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
            ], swiftSettings: strict)
    ],
    swiftLanguageModes: [.v6]
)
