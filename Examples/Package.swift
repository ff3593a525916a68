// swift-tools-version: 6.2

// A separate package, like a user's program: it sees only public declarations.

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

func library(_ name: String) -> Target.Dependency { .product(name: name, package: "RunLoopKit") }

func example(_ name: String, _ libraries: String...) -> Target {
    .executableTarget(
        name: name, dependencies: (["RunLoopKit"] + libraries).map(library), path: name, swiftSettings: strict)
}

// Targets named in this variable are all that a build has: `make demo` builds two programs at once, and no others.
let chosen = Context.environment["EXAMPLE_TARGETS"]?.split(separator: " ").map(String.init)

let package = Package(
    name: "Examples",
    dependencies: [
        .package(name: "RunLoopKit", path: ".."),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
    ],
    targets: [
        example("HelloTimer"),
        example("ModalRun", "RunLoopSimulation"),
        example("PollHost"),
        example("AsyncMain"),
        example("ActorTimers", "RunLoopSimulation"),
        example("WorkerThread"),
        example("VirtualDay", "RunLoopSimulation"),
        example("TimerForms"),
        example("TimerSources"),
        example("ResendCode", "RunLoopSimulation"),
        example("FrameRate"),
        example("FileWatcher", "RunLoopUnix"),
        example("ChildTimeout", "RunLoopUnix"),
        example("Supervisor", "RunLoopUnix"),
        example("EchoServer", "RunLoopUnix"),
        example("Greeter", "RunLoopUnix"),
        example("AsyncEcho", "RunLoopUnix"),
        example("RollingEcho", "RunLoopUnix"),
        example("TLSEcho", "RunLoopUnix", "RunLoopTLS"),
        example("Proxy", "RunLoopUnix", "RunLoopTLS", "RunLoopRecording"),
        example("DNSForwarder", "RunLoopUnix"),
        .target(
            name: "RecordOptions",
            dependencies: [
                library("RunLoopRecording"), .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "RecordOptions", swiftSettings: strict),
        .executableTarget(
            name: "TTLStore",
            dependencies: [
                "RecordOptions", library("RunLoopKit"), library("RunLoopRecording"), library("RunLoopUnix"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "TTLStore", exclude: ["README.md", "ttlstore.service", "demo"],
            swiftSettings: strict),
        .executableTarget(
            name: "Cron",
            dependencies: [
                "RecordOptions", library("RunLoopKit"), library("RunLoopRecording"), library("RunLoopUnix"),
                library("RunLoopCalendar"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Cron", exclude: ["README.md", "cron.service"],
            swiftSettings: strict),
        .executableTarget(
            name: "Raft",
            dependencies: [
                library("RunLoopKit"), library("RunLoopUnix"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Raft", exclude: ["README.md", "demo"],
            swiftSettings: strict),
        .target(
            name: "Scenarios",
            dependencies: [library("RunLoopKit"), library("RunLoopSimulation"), library("RunLoopExploration")],
            path: "Scenarios", swiftSettings: strict),
        .executableTarget(
            name: "experiments",
            dependencies: [
                library("RunLoopKit"), "Scenarios", library("RunLoopExploration"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "experiments",
            resources: [.embedInCode("Data")],
            swiftSettings: strict),
        .executableTarget(
            name: "runloop-trace",
            dependencies: [
                library("RunLoopKit"), library("RunLoopExploration"), library("RunLoopRecording"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "trace", swiftSettings: strict),
        .executableTarget(
            name: "runloop-top",
            dependencies: [
                library("RunLoopKit"), library("RunLoopUnix"), library("RunLoopConsole"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "top", swiftSettings: strict),
        .executableTarget(
            name: "Corpus",
            dependencies: [
                library("RunLoopKit"), library("RunLoopUnix"), library("RunLoopSimulation"), library("RunLoopHosts"),
                library("RunLoopExploration"), library("RunLoopTesting"),
            ],
            path: "Corpus", swiftSettings: strict),

        // The library's own test support, as a link, which needs only public declarations.
        .target(
            name: "ExampleTestSupport", dependencies: [library("RunLoopKit"), library("RunLoopSimulation")],
            path: "Tests/Support", swiftSettings: strict),
        .testTarget(
            name: "SmallExampleTests",
            dependencies: [
                "AsyncMain", "FileWatcher", "FrameRate", "Greeter", "RollingEcho", "ExampleTestSupport",
                library("RunLoopKit"), library("RunLoopUnix"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TraceTests",
            dependencies: [
                "runloop-trace", "ExampleTestSupport", library("RunLoopKit"), library("RunLoopSimulation"),
                library("RunLoopExploration"), library("RunLoopRecording"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TopTests",
            dependencies: [
                "runloop-top", "ExampleTestSupport", library("RunLoopKit"), library("RunLoopUnix"),
                library("RunLoopConsole"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TTLStoreTests",
            dependencies: [
                "TTLStore", "ExampleTestSupport", library("RunLoopKit"), library("RunLoopUnix"),
                library("RunLoopSimulation"), library("RunLoopHosts"), library("RunLoopExploration"),
                library("RunLoopTesting"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            exclude: ["Commands/record-transcript", "Commands/redis-7.0.transcript"], swiftSettings: strict),
        .testTarget(
            name: "CronTests",
            dependencies: [
                "Cron", "ExampleTestSupport", library("RunLoopKit"), library("RunLoopUnix"),
                library("RunLoopCalendar"), library("RunLoopSimulation"), library("RunLoopHosts"),
                library("RunLoopExploration"), library("RunLoopTesting"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "RaftTests",
            dependencies: [
                "Raft", "ExampleTestSupport", library("RunLoopKit"), library("RunLoopUnix"),
                library("RunLoopSimulation"), library("RunLoopHosts"), library("RunLoopExploration"),
                library("RunLoopTesting"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ProxyTests",
            dependencies: [
                "Proxy", "ExampleTestSupport", library("RunLoopKit"), library("RunLoopUnix"), library("RunLoopTLS"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "DNSForwarderTests",
            dependencies: [
                "DNSForwarder", "ExampleTestSupport", library("RunLoopKit"), library("RunLoopUnix"),
                library("RunLoopSimulation"), library("RunLoopHosts"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ScenariosTests", dependencies: ["Scenarios", "experiments", "ExampleTestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "CorpusTests",
            dependencies: [
                "Corpus", "ExampleTestSupport", library("RunLoopExploration"), library("RunLoopKit"),
                library("RunLoopUnix"),
            ],
            swiftSettings: strict),
    ].filter { chosen?.contains($0.name) ?? true },
    swiftLanguageModes: [.v6]
)
