// swift-tools-version: 6.2

// A package of its own, so that the other examples need no GTK.

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

func library(_ name: String) -> Target.Dependency { .product(name: name, package: "RunLoopKit") }

let package = Package(
    name: "GTKDrag",
    dependencies: [
        .package(name: "RunLoopKit", path: "../..", traits: ["Adapters"]),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.5.0"),
    ],
    targets: [
        .systemLibrary(name: "CGTK", path: "CGTK", pkgConfig: "gtk4", providers: [.apt(["libgtk-4-dev"])]),
        // The rules for the calls around a drag, without a window.
        .target(name: "DragReport", dependencies: [library("RunLoopKit")], swiftSettings: strict),
        .executableTarget(
            name: "GTKDrag",
            dependencies: [
                "CGTK", "DragReport", library("RunLoopKit"), library("RunLoopGLib"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),
        // GLib's own client of D-Bus, which needs no window.
        .testTarget(
            name: "BusTests", dependencies: ["CGTK", library("RunLoopKit"), library("RunLoopGLib")],
            swiftSettings: strict),
        .testTarget(
            name: "DragReportTests",
            dependencies: ["DragReport", library("RunLoopKit"), library("RunLoopSimulation")], swiftSettings: strict),
    ]
)
