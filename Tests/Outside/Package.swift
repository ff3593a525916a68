// swift-tools-version: 6.2

// Code that others write with the ports: a driver with its world, streams, a source; and another library's loop in modes.

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

func library(_ name: String) -> Target.Dependency { .product(name: name, package: "RunLoopKit") }

let package = Package(
    name: "Outside",
    dependencies: [
        .package(name: "RunLoopKit", path: "../.."),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
    ],
    targets: [
        .target(name: "PollDriver", dependencies: [library("RunLoopKit")], swiftSettings: settings),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .target(
            name: "DeflateStream", dependencies: ["CZlib", library("RunLoopKit"), library("RunLoopUnix")],
            swiftSettings: settings),
        .target(
            name: "CountingStream", dependencies: [library("RunLoopKit"), library("RunLoopUnix")],
            swiftSettings: settings),
        .target(name: "BellSource", dependencies: [library("RunLoopKit")], swiftSettings: settings),
        .systemLibrary(name: "CLibuv", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
        .target(name: "UVItem", dependencies: ["CLibuv", library("RunLoopKit")], swiftSettings: settings),
        .testTarget(
            name: "OutsideTests",
            dependencies: [
                "PollDriver", "DeflateStream", "CountingStream", "BellSource", "CLibuv", "UVItem",
                library("RunLoopConformance"), library("RunLoopKit"), library("RunLoopSimulation"),
                library("RunLoopTesting"), library("RunLoopUnix"),
            ], swiftSettings: settings),
        // The programs of Examples as they are: their folders are links.
        .target(
            name: "RecordOptions",
            dependencies: [
                library("RunLoopRecording"), .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        .target(
            name: "TTLStore",
            dependencies: [
                "RecordOptions", library("RunLoopKit"), library("RunLoopRecording"), library("RunLoopUnix"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            exclude: ["README.md", "ttlstore.service", "demo"],
            // A program may not depend on another one, so this one's entry point gets a name.
            swiftSettings: [.unsafeFlags(["-Xfrontend", "-entry-point-function-name", "-Xfrontend", "TTLStore_main"])]),
        .executableTarget(name: "PolledTTLStore", dependencies: ["PollDriver", "TTLStore"], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
