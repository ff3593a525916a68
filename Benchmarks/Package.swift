// swift-tools-version: 6.2

// A package of its own: who uses RunLoopKit gets none of the peers.

import PackageDescription

/// A loop that is measured: an executable on the shared driver.
func peer(_ name: String, _ dependencies: Target.Dependency..., libraries: [String] = []) -> Target {
    .executableTarget(
        name: "\(name)Peer", dependencies: ["Driver"] + dependencies, path: "Sources/Peers/\(name)",
        linkerSettings: libraries.map { .linkedLibrary($0) })
}

let package = Package(
    name: "Benchmarks",
    dependencies: [
        .package(name: "RunLoopKit", path: ".."),
    ],
    targets: [
        // The workloads, the same for every peer.
        .target(name: "Driver"),

        peer(
            "RunLoopKit", .product(name: "RunLoopKit", package: "RunLoopKit"),
            .product(name: "RunLoopSimulation", package: "RunLoopKit")),
        // What callgrind counts.
        .executableTarget(
            name: "Costs",
            dependencies: [
                .product(name: "RunLoopKit", package: "RunLoopKit"),
                .product(name: "RunLoopSimulation", package: "RunLoopKit"),
            ]),

        peer("Floor"),
        peer("Libevent", libraries: ["event_core", "event_pthreads"]),
        peer("Libev", libraries: ["ev"]),
    ],
    swiftLanguageModes: [.v6]
)
