// swift-tools-version: 6.2

// A package that depends on RunLoopKit: Tests/dependent-checks compares the packages that it fetches and the modules that it builds.

import PackageDescription

// The path of RunLoopKit, the adapters to use, and the trait to enable.
let path = Context.environment["RUNLOOPKIT"] ?? "../.."
let adapters = Context.environment["ADAPTERS"]?.split(separator: " ").map(String.init) ?? []
let traits: Set<Package.Dependency.Trait> = Context.environment["TRAIT"].map { [.trait(name: $0)] } ?? [.defaults]

let package = Package(
    name: "Dependent",
    dependencies: [.package(name: "RunLoopKit", path: path, traits: traits)],
    targets: [
        .executableTarget(
            name: "Dependent",
            dependencies: (["RunLoopKit", "RunLoopSimulation"] + adapters).map {
                .product(name: $0, package: "RunLoopKit")
            },
            swiftSettings: adapters.map { .define($0) })
    ]
)
