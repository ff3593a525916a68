// swift-tools-version: 6.2

// A package of its own, so that the other examples fetch nothing for it.

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    // Tasks stay on the threads of their loops.
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

func library(_ name: String) -> Target.Dependency { .product(name: name, package: "RunLoopKit") }

let package = Package(
    name: "Web",
    dependencies: [
        .package(name: "RunLoopKit", path: "../..", traits: ["Adapters"]),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.4.0"),
    ],
    targets: [
        // The daemon as a library, so that tests run it in a simulation.
        .target(
            name: "WebServer",
            dependencies: [
                library("RunLoopKit"), library("RunLoopUnix"), library("RunLoopHTTP"), library("RunLoopTLS"),
                library("RunLoopMetrics"), library("RunLoopConsole"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Logging", package: "swift-log"),
            ],
            resources: [.embedInCode("Console/Page")],
            swiftSettings: strict),
        .executableTarget(
            name: "Web",
            dependencies: [
                "WebServer", library("RunLoopKit"), library("RunLoopRecording"), library("RunLoopUnix"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .executableTarget(
            name: "SimulatedDay",
            dependencies: [
                "WebServer", library("RunLoopKit"), library("RunLoopUnix"), library("RunLoopHTTP"),
                library("RunLoopSimulation"), library("RunLoopHosts"), library("RunLoopTesting"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/SimulatedDay", swiftSettings: strict),
        .testTarget(
            name: "WebTests",
            dependencies: [
                "WebServer", "Web", "SimulatedDay", library("RunLoopKit"), library("RunLoopUnix"),
                library("RunLoopHTTP"), library("RunLoopSimulation"), library("RunLoopHosts"),
                library("RunLoopExploration"), library("RunLoopTesting"),
                .product(name: "Logging", package: "swift-log"),
            ],
            exclude: ["Attacks/attack", "Attacks/attacker.py", "Console/console-browser", "Server/chat-client"],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
