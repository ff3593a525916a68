// swift-tools-version: 6.2

// The programs of the page "Beside NIO, Dispatch and async-http-client": a package of its own, because RunLoopKit itself
// needs none of these.

import PackageDescription

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

let package = Package(
    name: "Beside",
    dependencies: [
        .package(name: "RunLoopKit", path: "../.."),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.80.0"),
        .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.24.0"),
    ],
    targets: [
        .target(
            name: "StateServer",
            dependencies: [
                .product(name: "RunLoopKit", package: "RunLoopKit"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ], swiftSettings: strict),
        .executableTarget(
            name: "Fetch",
            dependencies: [
                "StateServer", .product(name: "RunLoopKit", package: "RunLoopKit"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
            ], swiftSettings: strict),
        .executableTarget(
            name: "Hops",
            dependencies: [
                .product(name: "RunLoopKit", package: "RunLoopKit"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
            ], swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
