// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "Heddle",
    platforms: [.iOS(.v15)],
    products: [.library(name: "Heddle", targets: ["Heddle"])],
    targets: [
        // what ios.sh makes: the classes that gobind makes of Go's package mobile
        .binaryTarget(name: "HeddleCore", path: "HeddleCore.xcframework"),
        .target(name: "Heddle", dependencies: ["HeddleCore"], resources: [.copy("PrivacyInfo.xcprivacy")],
                linkerSettings: [.linkedLibrary("resolv")]),
    ]
)
