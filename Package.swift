// swift-tools-version: 6.2

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

/// A product that an adapter is for. A dependent fetches what the targets of the products below need, used or not: so these
/// have a condition, and no program, whose packages have none, is among the products.
func adapted(_ name: String, from package: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: ["Adapters"]))
}

extension [Target] {
    /// These names, with those of the targets and packages that their targets need.
    func needed(by names: Set<String>) -> Set<String> {
        let needs = filter { names.contains($0.name) }.flatMap(\.dependencies).compactMap { dependency in
            switch dependency {
            case .byNameItem(let name, _), .targetItem(let name, _): name
            case .productItem(_, let package, _, _): package
            @unknown default: nil
            }
        }
        return names.isSuperset(of: needs) ? names : needed(by: names.union(needs))
    }
}

let products: [Product] = [
    .library(name: "RunLoopKit", targets: ["RunLoopKit"]),
    .library(name: "RunLoopUnix", targets: ["RunLoopUnix"]),
    .library(name: "RunLoopTLS", targets: ["RunLoopTLS"]),
    .library(name: "RunLoopConsole", targets: ["RunLoopConsole"]),
    .library(name: "RunLoopRecording", targets: ["RunLoopRecording"]),
    .library(name: "RunLoopFoundation", targets: ["RunLoopFoundation"]),
    .library(name: "RunLoopCalendar", targets: ["RunLoopCalendar"]),
    .library(name: "RunLoopSimulation", targets: ["RunLoopSimulation"]),
    .library(name: "RunLoopHosts", targets: ["RunLoopHosts"]),
    .library(name: "RunLoopExploration", targets: ["RunLoopExploration"]),
    .library(name: "RunLoopTesting", targets: ["RunLoopTesting"]),
    .library(name: "RunLoopConformance", targets: ["RunLoopConformance"]),
    .library(name: "RunLoopPreload", type: .dynamic, targets: ["RunLoopPreload"]),
    .library(name: "RunLoopLogging", targets: ["RunLoopLogging"]),
    .library(name: "RunLoopMetrics", targets: ["RunLoopMetrics"]),
    .library(name: "RunLoopServiceLifecycle", targets: ["RunLoopServiceLifecycle"]),
    .library(name: "RunLoopNIO", targets: ["RunLoopNIO"]),
    .library(name: "RunLoopHTTP", targets: ["RunLoopHTTP"]),
    .library(name: "RunLoopGLib", targets: ["RunLoopGLib"]),
]

/// The packages that the adapters are for, by the names that targets use.
let packages: KeyValuePairs<String, Package.Dependency> = [
    "swift-async-algorithms": .package(url: "https://github.com/apple/swift-async-algorithms.git", from: "1.0.0"),
    "swift-http-types": .package(url: "https://github.com/apple/swift-http-types.git", from: "1.3.0"),
    "swift-log": .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
    "swift-metrics": .package(url: "https://github.com/apple/swift-metrics.git", from: "2.4.0"),
    "swift-nio": .package(url: "https://github.com/apple/swift-nio.git", from: "2.92.0"),
    "swift-nio-http2": .package(url: "https://github.com/apple/swift-nio-http2.git", from: "1.38.0"),
    "swift-service-lifecycle": .package(
        url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
]

let targets: [Target] = [
    // C: the system's libevent, and the few Linux calls that Swift's Glibc module lacks.
    .systemLibrary(
        name: "CLibevent", path: "CLibevent", pkgConfig: "libevent_core",
        providers: [.apt(["libevent-dev"])]),
    .systemLibrary(
        name: "COpenSSL", path: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(
        name: "CGLib", path: "CGLib", pkgConfig: "glib-2.0", providers: [.apt(["libglib2.0-dev"])]),
    .target(name: "CShims"),

    // The library: what the loop is, what it waits with, what users import.
    .target(name: "RunLoopCore", dependencies: ["CShims"], swiftSettings: strict),
    .target(name: "RunLoopLibevent", dependencies: ["RunLoopCore", "CLibevent", "CShims"], swiftSettings: strict),
    .target(
        name: "RunLoopKit", dependencies: ["RunLoopCore", "RunLoopLibevent", "CShims"], swiftSettings: strict),
    .target(name: "RunLoopUnix", dependencies: ["RunLoopKit", "CShims"], swiftSettings: strict),
    .target(
        name: "RunLoopTLS", dependencies: ["RunLoopUnix", "COpenSSL", "CShims"], packageAccess: false,
        swiftSettings: strict),
    .target(
        name: "RunLoopConsole", dependencies: ["RunLoopCore", "RunLoopKit", "RunLoopUnix", "CShims"],
        packageAccess: false, swiftSettings: strict),
    // C: the seeds of Swift's hashing.
    .target(name: "CRecording"),
    .target(
        name: "RunLoopRecording",
        dependencies: ["RunLoopCore", "RunLoopKit", "RunLoopUnix", "CShims", "CRecording"],
        packageAccess: false, swiftSettings: strict),
    .target(name: "RunLoopFoundation", dependencies: ["RunLoopKit"], packageAccess: false, swiftSettings: strict),
    .target(name: "RunLoopCalendar", dependencies: ["RunLoopKit"], packageAccess: false, swiftSettings: strict),
    .target(
        name: "RunLoopSimulation", dependencies: ["RunLoopCore", "CShims"], packageAccess: false, swiftSettings: strict),
    .target(
        name: "RunLoopHosts",
        dependencies: ["RunLoopCore", "RunLoopSimulation", "RunLoopKit", "RunLoopUnix", "CShims", "CPrograms"],
        packageAccess: false, swiftSettings: strict),
    .target(
        name: "RunLoopExploration", dependencies: ["RunLoopCore", "RunLoopSimulation", "CShims"],
        packageAccess: false, swiftSettings: strict),
    // C: processes of the system that a simulation runs, and the library that is loaded first in them.
    .target(name: "CPrograms", dependencies: ["CShims"]),
    .target(
        name: "RunLoopPreload",
        cSettings: [.headerSearchPath("../CPrograms/include"), .headerSearchPath("../CShims/include")]),
    // Only in test programs: functions of the C library that a simulation answers.
    .target(name: "CInterposition", dependencies: ["CShims"]),
    .target(
        name: "RunLoopTesting",
        dependencies: ["CInterposition", "CShims", "RunLoopCore", "RunLoopSimulation", "RunLoopExploration"],
        packageAccess: false, swiftSettings: strict),

    // Beside it, for those who use these packages: nobody else depends on them.
    .target(
        name: "RunLoopLogging", dependencies: ["RunLoopKit", adapted("Logging", from: "swift-log")],
        packageAccess: false, swiftSettings: strict),
    .target(
        name: "RunLoopMetrics",
        dependencies: ["RunLoopKit", adapted("CoreMetrics", from: "swift-metrics")],
        packageAccess: false, swiftSettings: strict),
    .target(
        name: "RunLoopServiceLifecycle",
        dependencies: [
            "RunLoopKit", "RunLoopUnix",
            adapted("ServiceLifecycle", from: "swift-service-lifecycle"),
        ],
        packageAccess: false, swiftSettings: strict),
    .target(
        name: "RunLoopNIO",
        dependencies: [
            "RunLoopCore", "RunLoopKit", "RunLoopUnix", "RunLoopTLS", adapted("NIOCore", from: "swift-nio"),
            adapted("NIOTLS", from: "swift-nio"),
        ],
        packageAccess: false, swiftSettings: strict),
    .target(
        name: "RunLoopHTTP",
        dependencies: [
            "RunLoopKit", "RunLoopUnix", "RunLoopTLS", "RunLoopNIO", adapted("HTTPTypes", from: "swift-http-types"),
            adapted("NIOCore", from: "swift-nio"), adapted("NIOHTTP1", from: "swift-nio"),
            adapted("NIOHTTP2", from: "swift-nio-http2"), adapted("NIOTLS", from: "swift-nio"),
            adapted("NIOWebSocket", from: "swift-nio"),
        ],
        packageAccess: false, swiftSettings: strict),
    .target(
        name: "RunLoopGLib",
        dependencies: [
            "RunLoopCore", "RunLoopKit", .target(name: "CGLib", condition: .when(traits: ["Adapters"])),
        ],
        packageAccess: false, swiftSettings: strict),

    // What several of the tests need.
    .target(
        name: "TestSupport", dependencies: ["RunLoopKit", "RunLoopSimulation"], path: "Tests/TestSupport",
        swiftSettings: strict),
    .target(
        name: "TLSTestSupport", dependencies: ["RunLoopTLS", "COpenSSL"], path: "Tests/TLSTestSupport",
        swiftSettings: strict),
    // The requirements of a driver, a world and a stream, for tests here and outside.
    .target(
        name: "RunLoopConformance",
        dependencies: ["RunLoopCore", "RunLoopKit", "RunLoopUnix", "RunLoopSimulation", "TestSupport"],
        swiftSettings: strict),
    .executableTarget(
        name: "Minute", dependencies: ["RunLoopKit", "RunLoopUnix", "RunLoopSimulation", "RunLoopHosts"],
        path: "Tests/Minute", swiftSettings: strict),
    .executableTarget(name: "Races", path: "Tests/Races", swiftSettings: strict),
    // C: random calls, of the kernel or of a simulated host.
    .executableTarget(name: "RandomCalls", path: "Tests/RandomCalls"),
    .executableTarget(
        name: "Links", dependencies: ["RunLoopKit", "RunLoopUnix", "RunLoopSimulation", "RunLoopHosts"],
        path: "Tests/Links", swiftSettings: strict),
    .executableTarget(
        name: "UnmodifiedWeek",
        dependencies: [
            "RunLoopKit", "RunLoopUnix", "RunLoopTLS", "RunLoopSimulation", "RunLoopHosts", "RunLoopTesting",
        ],
        path: "Tests/UnmodifiedWeek", swiftSettings: strict),
    .executableTarget(
        name: "Linking",
        dependencies: ["RunLoopKit", "RunLoopSimulation", "RunLoopExploration", "RunLoopHosts", "RunLoopTesting"],
        path: "Tests/Linking", swiftSettings: strict),
    .testTarget(
        name: "DriverTests",
        dependencies: [
            "RunLoopConformance", "RunLoopCore", "RunLoopLibevent", "RunLoopSimulation", "TestSupport", "RunLoopKit",
            "CShims",
        ],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopConformanceTests",
        dependencies: [
            "RunLoopConformance", "RunLoopCore", "RunLoopKit", "RunLoopUnix", "RunLoopSimulation", "TestSupport",
        ],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopKitTests",
        dependencies: ["RunLoopCore", "RunLoopKit", "RunLoopSimulation", "TestSupport"],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopSimulationTests",
        dependencies: ["RunLoopCore", "RunLoopKit", "RunLoopSimulation", "TestSupport"],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopExplorationTests",
        dependencies: [
            "RunLoopExploration", "RunLoopCore", "RunLoopKit", "RunLoopUnix", "RunLoopSimulation", "RunLoopHosts",
            "TestSupport", "Races",
        ],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopTestingTests",
        dependencies: [
            "RunLoopTesting", "RunLoopKit", "RunLoopUnix", "RunLoopSimulation", "RunLoopHosts",
            "RunLoopExploration", "TestSupport",
        ],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopCoreTests",
        dependencies: ["RunLoopCore", "RunLoopKit", "RunLoopLibevent", "RunLoopSimulation", "TestSupport"],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopUnixTests",
        dependencies: [
            "RunLoopUnix", "RunLoopKit", "RunLoopSimulation", "TestSupport", "CShims",
        ],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopConsoleTests",
        dependencies: ["RunLoopConsole", "RunLoopUnix", "RunLoopKit", "RunLoopSimulation", "TestSupport"],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopHostsTests",
        dependencies: [
            "RunLoopConformance", "RunLoopHosts", "RunLoopUnix", "RunLoopTLS", "RunLoopKit",
            "RunLoopSimulation",
            "TestSupport", "TLSTestSupport", "Minute", "UnmodifiedWeek", "Links", "Linking", "RandomCalls",
        ],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopTLSTests",
        dependencies: [
            "RunLoopTLS", "RunLoopUnix", "RunLoopKit", "RunLoopSimulation", "TestSupport", "TLSTestSupport",
            "COpenSSL",
        ],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopRecordingTests",
        dependencies: [
            "RunLoopConformance", "RunLoopRecording", "RunLoopCore", "RunLoopKit", "RunLoopUnix", "RunLoopTLS",
            "RunLoopSimulation", "RunLoopHosts", "RunLoopExploration", "TestSupport", "TLSTestSupport", "CShims",
        ],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopCalendarTests",
        dependencies: ["RunLoopCalendar", "RunLoopFoundation", "RunLoopSimulation", "TestSupport"],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopFoundationTests", dependencies: ["RunLoopFoundation", "RunLoopSimulation"],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopGLibTests",
        dependencies: [
            "RunLoopGLib", "RunLoopKit", "RunLoopSimulation", "TestSupport",
            .target(name: "CGLib", condition: .when(traits: ["Adapters"])),
        ],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopNIOTests",
        dependencies: [
            "RunLoopNIO", "RunLoopKit", "RunLoopUnix", "RunLoopTLS", "RunLoopSimulation", "RunLoopHosts",
            "RunLoopExploration", "RunLoopTesting", "TestSupport", "TLSTestSupport",
            adapted("NIOCore", from: "swift-nio"),
            adapted("NIOHTTP1", from: "swift-nio"),
            adapted("NIOPosix", from: "swift-nio"),
            adapted("NIOTLS", from: "swift-nio"),
        ],
        swiftSettings: strict),
    .testTarget(
        name: "RunLoopHTTPTests",
        dependencies: [
            "RunLoopHTTP", "RunLoopNIO", "RunLoopKit", "RunLoopUnix", "RunLoopTLS", "RunLoopSimulation", "RunLoopHosts",
            "RunLoopExploration", "RunLoopTesting", "TestSupport", "TLSTestSupport",
            adapted("HTTPTypes", from: "swift-http-types"),
            adapted("NIOCore", from: "swift-nio"),
            adapted("NIOHTTP1", from: "swift-nio"),
        ],
        swiftSettings: strict),
    .testTarget(
        name: "AdapterTests",
        dependencies: [
            "RunLoopKit", "RunLoopUnix", "RunLoopLibevent", "RunLoopSimulation", "RunLoopLogging", "RunLoopMetrics",
            "RunLoopServiceLifecycle", "RunLoopTesting", "TestSupport",
            adapted("AsyncAlgorithms", from: "swift-async-algorithms"),
            adapted("Logging", from: "swift-log"),
            adapted("MetricsTestKit", from: "swift-metrics"),
            adapted("ServiceLifecycle", from: "swift-service-lifecycle"),
            adapted("ServiceLifecycleTestKit", from: "swift-service-lifecycle"),
        ],
        swiftSettings: strict),
]

// Test targets named in this variable are all that a build has, with what they need: `make build`, `tsan-short` and
// `asan-short` compile nothing that they do not run. Names of other packages' targets mean nothing here.
let chosen = Set((Context.environment["TEST_TARGETS"] ?? "").split(separator: " ").map(String.init))
    .intersection(targets.map(\.name))
var needed = targets.needed(by: chosen.isEmpty ? Set(targets.map(\.name)) : chosen)
// Programs on simulated hosts load it. The tests do not: its functions would be theirs.
if needed.contains("RunLoopHosts") { needed.insert("RunLoopPreload") }

let package = Package(
    name: "RunLoopKit",
    products: products.filter { needed.contains($0.name) },
    // One for all adapters: SwiftPM gives several to the compiler in an order that changes from plan to plan, and each
    // change compiles everything.
    traits: [
        .trait(
            name: "Adapters",
            description: """
                RunLoopGLib, RunLoopHTTP, RunLoopLogging, RunLoopMetrics, RunLoopNIO and RunLoopServiceLifecycle
                """)
    ],
    dependencies: packages.filter { needed.contains($0.key) }.map(\.value),
    targets: targets.filter { needed.contains($0.name) },
    swiftLanguageModes: [.v6]
)
