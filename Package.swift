// swift-tools-version: 6.2

import Foundation
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

func example(_ name: String, _ dependencies: Target.Dependency...) -> Target {
    .executableTarget(
        name: name, dependencies: ["RunLoopKit"] + dependencies, path: "Examples/\(name)", swiftSettings: strict)
}

// A package that depends on this one fetches what the traits ask for. By itself, this package is built whole. It is a
// dependency if it lies among a package's checkouts, or if SwiftPM was called in another package's directory. Traits that
// are on by default would do the same, but SwiftPM passes them to the compiler in an order that changes, so that a build
// that is planned again could compile everything again.
let caller = URL(filePath: Context.environment["PWD"] ?? "/").resolvingSymlinksInPath()
let isDependency =
    Context.packageDirectory.contains("/checkouts/")
    || (caller.path != Context.packageDirectory
        && FileManager.default.fileExists(atPath: caller.appending(path: "Package.swift").path))

/// A product of another package, for the targets of a trait.
func product(_ name: String, of package: String, if trait: String) -> Target.Dependency {
    .product(name: name, package: package, condition: isDependency ? .when(traits: [trait]) : nil)
}

let package = Package(
    name: "RunLoopKit",
    products: [
        .library(name: "RunLoopKit", targets: ["RunLoopKit"]),
        .library(name: "RunLoopUnix", targets: ["RunLoopUnix"]),
        .library(name: "RunLoopTLS", targets: ["RunLoopTLS"]),
        .library(name: "RunLoopFoundation", targets: ["RunLoopFoundation"]),
        .library(name: "RunLoopCalendar", targets: ["RunLoopCalendar"]),
        .library(name: "RunLoopSimulation", targets: ["RunLoopSimulation"]),
        .library(name: "RunLoopHosts", targets: ["RunLoopHosts"]),
        .library(name: "RunLoopExploration", targets: ["RunLoopExploration"]),
        .library(name: "RunLoopTesting", targets: ["RunLoopTesting"]),
        .library(name: "RunLoopLogging", targets: ["RunLoopLogging"]),
        .library(name: "RunLoopMetrics", targets: ["RunLoopMetrics"]),
        .library(name: "RunLoopServiceLifecycle", targets: ["RunLoopServiceLifecycle"]),
        .executable(name: "experiments", targets: ["experiments"]),
    ],
    traits: [
        .trait(name: "Logging", description: "RunLoopLogging, for swift-log"),
        .trait(name: "Metrics", description: "RunLoopMetrics, for swift-metrics"),
        .trait(name: "ServiceLifecycle", description: "RunLoopServiceLifecycle, for swift-service-lifecycle"),
        .trait(name: "Programs", description: "The experiments, TTLStore and Cron", enabledTraits: ["Logging"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-async-algorithms.git", from: "1.0.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.4.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
    ],
    targets: [
        // C: the system's libevent, and the few Linux calls that Swift's Glibc module lacks.
        .systemLibrary(
            name: "CLibevent", path: "CLibevent", pkgConfig: "libevent_core",
            providers: [.apt(["libevent-dev"])]),
        .systemLibrary(
            name: "COpenSSL", path: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .target(name: "CShims"),

        // The library: what the loop is, what it waits with, what users import.
        .target(name: "RunLoopCore", dependencies: ["CShims"], swiftSettings: strict),
        .target(name: "RunLoopLibevent", dependencies: ["RunLoopCore", "CLibevent", "CShims"], swiftSettings: strict),
        .target(
            name: "RunLoopKit", dependencies: ["RunLoopCore", "RunLoopLibevent", "CShims"], swiftSettings: strict),
        .target(name: "RunLoopUnix", dependencies: ["RunLoopKit", "CShims"], swiftSettings: strict),
        .target(name: "RunLoopTLS", dependencies: ["RunLoopUnix", "COpenSSL"], swiftSettings: strict),
        .target(name: "RunLoopFoundation", dependencies: ["RunLoopKit"], swiftSettings: strict),
        .target(name: "RunLoopCalendar", dependencies: ["RunLoopKit"], swiftSettings: strict),
        .target(name: "RunLoopSimulation", dependencies: ["RunLoopCore", "CShims"], swiftSettings: strict),
        .target(
            name: "RunLoopHosts", dependencies: ["RunLoopCore", "RunLoopSimulation", "RunLoopKit", "RunLoopUnix"],
            swiftSettings: strict),
        .target(
            name: "RunLoopExploration", dependencies: ["RunLoopCore", "RunLoopSimulation", "CShims"],
            swiftSettings: strict),
        .target(
            name: "RunLoopTesting", dependencies: ["RunLoopCore", "RunLoopSimulation", "RunLoopExploration"],
            swiftSettings: strict),

        // Beside it, for those who use these packages: nobody else depends on them.
        .target(
            name: "RunLoopLogging", dependencies: ["RunLoopKit", product("Logging", of: "swift-log", if: "Logging")],
            swiftSettings: strict),
        .target(
            name: "RunLoopMetrics",
            dependencies: ["RunLoopKit", product("CoreMetrics", of: "swift-metrics", if: "Metrics")],
            swiftSettings: strict),
        .target(
            name: "RunLoopServiceLifecycle",
            dependencies: [
                "RunLoopKit", "RunLoopUnix",
                product("ServiceLifecycle", of: "swift-service-lifecycle", if: "ServiceLifecycle"),
            ],
            swiftSettings: strict),

        // The experiments: scenarios as data, their player, and the command.
        .target(
            name: "Scenarios", dependencies: ["RunLoopKit", "RunLoopSimulation", "RunLoopExploration"],
            swiftSettings: strict),
        .executableTarget(
            name: "experiments",
            dependencies: [
                "RunLoopKit", "Scenarios", "RunLoopExploration",
                product("ArgumentParser", of: "swift-argument-parser", if: "Programs"),
            ],
            resources: [.embedInCode("Data")],
            swiftSettings: strict),

        // The examples: runnable programs, one folder each.
        example("HelloTimer"),
        example("ModalRun", "RunLoopSimulation"),
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
        example("AsyncEcho", "RunLoopUnix"),
        example("RollingEcho", "RunLoopUnix"),
        example("TLSEcho", "RunLoopUnix", "RunLoopTLS"),
        example("Proxy", "RunLoopUnix", "RunLoopTLS"),
        .executableTarget(
            name: "TTLStore",
            dependencies: [
                "RunLoopKit", "RunLoopUnix",
                product("ArgumentParser", of: "swift-argument-parser", if: "Programs"),
                product("Logging", of: "swift-log", if: "Logging"),
            ],
            path: "Examples/TTLStore", exclude: ["README.md", "ttlstore.service", "demo"],
            swiftSettings: strict),
        .executableTarget(
            name: "Cron",
            dependencies: [
                "RunLoopKit", "RunLoopUnix", "RunLoopCalendar",
                product("ArgumentParser", of: "swift-argument-parser", if: "Programs"),
                product("Logging", of: "swift-log", if: "Logging"),
            ],
            path: "Examples/Cron", exclude: ["README.md", "cron.service"],
            swiftSettings: strict),

        // What several of the tests need.
        .target(
            name: "TestSupport", dependencies: ["RunLoopCore", "RunLoopSimulation"], path: "Tests/TestSupport",
            swiftSettings: strict),
        .target(
            name: "TLSTestSupport", dependencies: ["RunLoopTLS", "COpenSSL"], path: "Tests/TLSTestSupport",
            swiftSettings: strict),
        .executableTarget(
            name: "Minute", dependencies: ["RunLoopKit", "RunLoopUnix", "RunLoopSimulation", "RunLoopHosts"],
            path: "Tests/Minute", swiftSettings: strict),
        .executableTarget(
            name: "Corpus",
            dependencies: [
                "RunLoopCore", "RunLoopKit", "RunLoopUnix", "RunLoopSimulation", "RunLoopHosts", "RunLoopExploration",
            ],
            path: "Tests/Corpus", swiftSettings: strict),
        .testTarget(
            name: "DriverTests",
            dependencies: [
                "RunLoopCore", "RunLoopLibevent", "RunLoopSimulation", "TestSupport", "RunLoopKit", "CShims",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "RunLoopKitTests",
            dependencies: [
                "RunLoopCore", "RunLoopKit", "RunLoopSimulation", "TestSupport", "CShims", "AsyncMain", "FrameRate",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "RunLoopSimulationTests",
            dependencies: ["RunLoopCore", "RunLoopKit", "RunLoopSimulation", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "RunLoopExplorationTests",
            dependencies: [
                "RunLoopExploration", "RunLoopCore", "RunLoopKit", "RunLoopUnix", "RunLoopSimulation", "RunLoopHosts",
                "TestSupport", "Corpus",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "RunLoopTestingTests",
            dependencies: [
                "RunLoopTesting", "RunLoopKit", "RunLoopUnix", "RunLoopSimulation", "RunLoopExploration", "TestSupport",
                product("AsyncAlgorithms", of: "swift-async-algorithms", if: "Programs"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "RunLoopCoreTests",
            dependencies: ["RunLoopCore", "RunLoopKit", "RunLoopLibevent", "RunLoopSimulation", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "RunLoopUnixTests",
            dependencies: [
                "RunLoopUnix", "RunLoopKit", "RunLoopSimulation", "TestSupport", "CShims", "RollingEcho",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "RunLoopHostsTests",
            dependencies: [
                "RunLoopHosts", "RunLoopUnix", "RunLoopTLS", "RunLoopKit", "RunLoopSimulation", "TestSupport",
                "TLSTestSupport", "Minute",
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
            name: "RunLoopCalendarTests", dependencies: ["RunLoopCalendar", "RunLoopFoundation", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "RunLoopFoundationTests", dependencies: ["RunLoopFoundation", "RunLoopSimulation"],
            swiftSettings: strict),
        .testTarget(
            name: "TTLStoreTests",
            dependencies: [
                "TTLStore", "RunLoopKit", "RunLoopUnix", "RunLoopSimulation", "RunLoopHosts", "RunLoopExploration",
                "RunLoopTesting", "TestSupport",
                product("Logging", of: "swift-log", if: "Logging"),
                product("ArgumentParser", of: "swift-argument-parser", if: "Programs"),
            ],
            exclude: ["Commands/record-transcript", "Commands/redis-7.0.transcript"], swiftSettings: strict),
        .testTarget(
            name: "CronTests",
            dependencies: [
                "Cron", "RunLoopKit", "RunLoopUnix", "RunLoopCalendar", "RunLoopSimulation", "RunLoopHosts",
                "RunLoopExploration", "RunLoopTesting", "TestSupport",
                product("Logging", of: "swift-log", if: "Logging"),
                product("ArgumentParser", of: "swift-argument-parser", if: "Programs"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "AdapterTests",
            dependencies: [
                "RunLoopKit", "RunLoopUnix", "RunLoopLibevent", "RunLoopSimulation", "RunLoopLogging", "RunLoopMetrics",
                "RunLoopServiceLifecycle", "TestSupport",
                product("Logging", of: "swift-log", if: "Logging"),
                product("MetricsTestKit", of: "swift-metrics", if: "Metrics"),
                product("ServiceLifecycle", of: "swift-service-lifecycle", if: "ServiceLifecycle"),
                product("ServiceLifecycleTestKit", of: "swift-service-lifecycle", if: "ServiceLifecycle"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ScenariosTests", dependencies: ["Scenarios", "experiments", "TestSupport"], swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)

// Test targets named in this variable are all that a build has, with what they need: `make tsan-short` and `asan-short`
// compile nothing that they do not run.
if let chosen = Context.environment["TEST_TARGETS"]?.split(separator: " ").map(String.init) {
    var names = Set(chosen)
    var found = 0
    while found < names.count {
        found = names.count
        for target in package.targets where names.contains(target.name) {
            for case .byNameItem(let name, _) in target.dependencies { names.insert(name) }
        }
    }
    package.targets.removeAll { !names.contains($0.name) }
    package.products.removeAll { !names.contains($0.name) }
    // SwiftPM compiles whatever is in a package that is depended on.
    var packages: Set<String> = []
    for target in package.targets {
        for case .productItem(_, let package?, _, _) in target.dependencies { packages.insert(package) }
    }
    package.dependencies.removeAll {
        guard case .sourceControl(_, let location, _) = $0.kind else { return false }
        return !packages.contains(URL(filePath: location).deletingPathExtension().lastPathComponent)
    }
}
