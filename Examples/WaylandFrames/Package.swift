// swift-tools-version: 6.2

// A package of its own, so that the other examples need no Wayland.

import PackageDescription

let package = Package(
    name: "WaylandFrames",
    dependencies: [.package(name: "RunLoopKit", path: "../..")],
    targets: [
        // libwayland-client, and the protocols that the script `protocols` has made C of.
        .target(name: "CWayland", linkerSettings: [.linkedLibrary("wayland-client")]),
        .executableTarget(
            name: "WaylandFrames",
            dependencies: ["CWayland", .product(name: "RunLoopKit", package: "RunLoopKit")],
            swiftSettings: [.treatAllWarnings(as: .error)]),
    ],
    swiftLanguageModes: [.v6]
)
