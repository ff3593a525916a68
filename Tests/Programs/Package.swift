// swift-tools-version: 6.2

// Programs that were not written for simulations, on simulated hosts: a package of its own, because RunLoopKit itself
// needs none of their packages.

import PackageDescription

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

func ours(_ name: String) -> Target.Dependency { .product(name: name, package: "RunLoopKit") }

let package = Package(
    name: "Programs",
    dependencies: [
        .package(name: "RunLoopKit", path: "../.."),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.92.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.25.0"),
        .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.30.0"),
    ],
    targets: [
        .executableTarget(
            name: "Programs",
            dependencies: [
                ours("RunLoopKit"), ours("RunLoopUnix"), ours("RunLoopSimulation"), ours("RunLoopHosts"),
                ours("RunLoopPreload"),
            ], swiftSettings: strict),
        // The programs that run on its hosts.
        .executableTarget(
            name: "Service", dependencies: [.product(name: "Hummingbird", package: "hummingbird")],
            swiftSettings: strict),
        .executableTarget(
            name: "Asker",
            dependencies: [
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
            ], swiftSettings: strict),
        // TTLStore of Examples as it is: the folders are links.
        .target(
            name: "RecordOptions",
            dependencies: [
                ours("RunLoopRecording"), .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        .executableTarget(
            name: "TTLStore",
            dependencies: [
                "RecordOptions", ours("RunLoopKit"), ours("RunLoopRecording"), ours("RunLoopUnix"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            exclude: ["README.md", "ttlstore.service", "demo"]),
    ],
    swiftLanguageModes: [.v6]
)
