// swift-tools-version: 6.2

// Code that was not written for simulations, on simulated hosts: a package of its own, because RunLoopKit itself needs none
// of it. `Tests/others-checks` copies tests of other packages into `.build-copies` first.

import PackageDescription

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]
let copied: [SwiftSetting] =
    ["1.0", "1.1", "1.2", "1.3"].map {
        .enableExperimentalFeature("AvailabilityMacro=AsyncAlgorithms \($0):macOS 10.15")
    } + [.swiftLanguageMode(.v5), .unsafeFlags(["-suppress-warnings"])]

let package = Package(
    name: "Others",
    dependencies: [
        .package(name: "RunLoopKit", path: "../..", traits: ["Adapters"]),
        .package(url: "https://github.com/apple/swift-async-algorithms.git", from: "1.0.0"),
        .package(url: "https://github.com/apple/swift-collections.git", from: "1.1.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.80.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
    ],
    targets: [
        .target(name: "SimulatedXCTest", swiftSettings: strict),
        .target(
            name: "AsyncAlgorithmsTests",
            dependencies: [
                "SimulatedXCTest", .product(name: "AsyncAlgorithms", package: "swift-async-algorithms"),
                .product(name: "DequeModule", package: "swift-collections"),
            ], path: ".build-copies/AsyncAlgorithmsTests", swiftSettings: copied),
        .target(
            name: "ServiceLifecycleTests",
            dependencies: [
                "SimulatedXCTest", .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ], path: ".build-copies/ServiceLifecycleTests", swiftSettings: copied),
        .executableTarget(
            name: "Others",
            dependencies: [
                "SimulatedXCTest", "AsyncAlgorithmsTests", "ServiceLifecycleTests",
                .product(name: "RunLoopKit", package: "RunLoopKit"),
                .product(name: "RunLoopNIO", package: "RunLoopKit"),
                .product(name: "RunLoopUnix", package: "RunLoopKit"),
                .product(name: "RunLoopSimulation", package: "RunLoopKit"),
                .product(name: "RunLoopHosts", package: "RunLoopKit"),
                .product(name: "RunLoopTesting", package: "RunLoopKit"),
                .product(name: "Logging", package: "swift-log"), .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ], swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
