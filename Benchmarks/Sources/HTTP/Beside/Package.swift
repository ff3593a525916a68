// swift-tools-version: 6.2

// Hummingbird and async-http-client, for `make bench-protocols`: a package of its own, so that those who build other
// benchmarks do not fetch them.

import PackageDescription

let package = Package(
    name: "Beside",
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.92.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.25.0"),
        .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.30.0"),
    ],
    targets: [
        .executableTarget(
            name: "ServeHummingbird",
            dependencies: [
                .product(name: "Hummingbird", package: "hummingbird"), .product(name: "NIOPosix", package: "swift-nio"),
            ], path: "Sources/Hummingbird"),
        .executableTarget(
            name: "AskAsyncHTTPClient",
            dependencies: [
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ], path: "Sources/AsyncHTTPClient"),
    ],
    swiftLanguageModes: [.v6]
)
