// swift-tools-version: 6.2

// A package that depends on RunLoopKit: Tests/dependent-checks looks at what it fetches and builds.

import PackageDescription

// The trait named in this variable, or none, as for who names none.
let traits: Set<Package.Dependency.Trait> = Context.environment["TRAIT"].map { [.trait(name: $0)] } ?? [.defaults]

let package = Package(
    name: "Dependent",
    dependencies: [.package(name: "RunLoopKit", path: "../..", traits: traits)],
    targets: [
        .executableTarget(
            name: "Dependent",
            dependencies: [
                .product(name: "RunLoopKit", package: "RunLoopKit"),
                .product(name: "RunLoopSimulation", package: "RunLoopKit"),
            ])
    ]
)
