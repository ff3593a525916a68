// swift-tools-version: 6.2

// Loops of other libraries as hosts of a run loop: a package of its own, because RunLoopKit itself needs none of these.
// `Tests/guest-checks` builds and runs it.

import PackageDescription

let package = Package(
    name: "Guests",
    dependencies: [.package(name: "RunLoopKit", path: "../..")],
    targets: [
        .systemLibrary(name: "CGLibUnix", pkgConfig: "glib-2.0", providers: [.apt(["libglib2.0-dev"])]),
        .systemLibrary(name: "CLibuv", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
        .executableTarget(
            name: "GuestHosts",
            dependencies: ["CGLibUnix", "CLibuv", .product(name: "RunLoopKit", package: "RunLoopKit")],
            swiftSettings: [.treatAllWarnings(as: .error)]),
    ],
    swiftLanguageModes: [.v6]
)
