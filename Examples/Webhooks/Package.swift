// swift-tools-version: 6.2

// A package of its own, so that the other examples fetch nothing for it.

import PackageDescription

let strict: [SwiftSetting] = [
    // An async function stays on the thread of the loop that calls it.
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

func library(_ name: String) -> Target.Dependency { .product(name: name, package: "RunLoopKit") }

let package = Package(
    name: "Webhooks",
    dependencies: [
        .package(name: "RunLoopKit", path: "../..", traits: ["Adapters"]),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
    ],
    targets: [
        .executableTarget(
            name: "Webhooks",
            dependencies: [
                library("RunLoopKit"), library("RunLoopUnix"), library("RunLoopHTTP"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        // The library's own test support, as a link, which needs only public declarations.
        .target(
            name: "WebhooksTestSupport", dependencies: [library("RunLoopKit"), library("RunLoopSimulation")],
            path: "Tests/Support", swiftSettings: strict),
        .testTarget(
            name: "WebhooksTests",
            dependencies: [
                "Webhooks", "WebhooksTestSupport", library("RunLoopKit"), library("RunLoopUnix"),
                library("RunLoopHTTP"),
                library("RunLoopSimulation"), library("RunLoopHosts"), library("RunLoopExploration"),
                library("RunLoopTesting"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
