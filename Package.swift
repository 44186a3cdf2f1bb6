// swift-tools-version: 6.2
import PackageDescription

/// Our own targets: Swift 6 mode, explicit existentials and imports, and no warning left standing.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// STATIC_RUNTIME=1 links the Swift runtime into the program, with what its static libraries need. Unlike
/// `--static-swift-stdlib` it compiles nothing again.
let runtimeLibraries = [
    "-l_CFXMLInterface", "-l_CFURLSessionInterface", "-lCoreFoundation", "-l_FoundationICU", "-l_FoundationCShims",
    "-l_FoundationCollections", "-lxml2",
]
let linkedRuntime: [LinkerSetting] =
    Context.environment["STATIC_RUNTIME"] == nil ? [] : [.unsafeFlags(["-static-stdlib"] + runtimeLibraries)]

/// The version of a build that is told no other one. `.ci/version` prints the version of a tag or commit.
let firstVersion = "0.1.0"
let version = Context.environment["FANFARE_VERSION"] ?? firstVersion

let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let histogram: Target.Dependency = .product(name: "Histogram", package: "hdrhistogram-swift")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let coreMetrics: Target.Dependency = .product(name: "CoreMetrics", package: "swift-metrics")
let metrics: Target.Dependency = .product(name: "Metrics", package: "swift-metrics")
let sqlite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")
let serviceLifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let heap: Target.Dependency = .product(name: "HeapModule", package: "swift-collections")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore: Target.Dependency = .product(name: "HummingbirdCore", package: "hummingbird")
let mustache: Target.Dependency = .product(name: "Mustache", package: "swift-mustache")
let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let nioHTTPTypes: Target.Dependency = .product(name: "NIOHTTPTypes", package: "swift-nio-extras")
let unixSignals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let yams: Target.Dependency = .product(name: "Yams", package: "Yams")

let package = Package(
    name: "fanfare",
    products: [
        .executable(name: "fanfare", targets: ["fanfare"]),
        // For the crash tests alone, which loads it into the processes it kills.
        .library(name: "KillSwitch", type: .dynamic, targets: ["KillSwitch"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        // Hummingbird speaks in the types of HTTPTypes and NIO, and in NIO's parts of requests and answers.
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0", traits: []),
        .package(url: "https://github.com/apple/swift-log", from: "1.14.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-extras.git", from: "1.34.1"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
        .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // The arrows point downward only: a target may import what stands below it, never beside or above.
        .executableTarget(
            name: "fanfare",
            dependencies: [
                "Campaigns", "Sending", "Senders", "Rendering", "Daemon", "CampaignFiles", "Store", "SQLiteStore",
                "PostgresStore", "APNs", "APNsSimulator", "Systemd", "WebClient", "FeedReader", "Model", "Platform",
                "Web", "Guide", "OutputFiles", "COpenGuard", "CKernel", "COpenSSL", "CVersion", argumentParser, logging,
                metrics, serviceLifecycle, unixSignals,
            ],
            swiftSettings: strict,
            linkerSettings: linkedRuntime,
            // The examples of campaigns/ and templates/, for the demo: links, so that there is one copy.
            plugins: ["EmbedTexts"]
        ),
        .target(
            name: "Web",
            dependencies: [
                "Daemon", "Campaigns", "CampaignFiles", "Guide", "Model", coreMetrics, hummingbird, hummingbirdCore,
                httpTypes, logging, mustache, nioCore, nioHTTPTypes, serviceLifecycle, "CZlib",
            ],
            swiftSettings: strict,
            // The stylesheet and the templates of the pages and of the report: the program is one file.
            plugins: ["EmbedTexts"]),
        .target(
            name: "Daemon",
            dependencies: [
                "Campaigns", "Sending", "Senders", "Rendering", "Store", "FeedReader", "WebClient", "Model", "Platform",
                logging, metrics,
            ],
            swiftSettings: strict),
        .target(
            name: "Campaigns",
            dependencies: [
                "Sending", "Senders", "Rendering", "Store", "CampaignFiles", "Parquet", "Model", "Platform",
            ],
            swiftSettings: strict),
        .target(
            name: "Sending",
            dependencies: [
                "Senders", "Rendering", "Store", "APNs", "Model", "Platform", logging, histogram, metrics, coreMetrics,
            ],
            swiftSettings: strict),
        // The senders of a store: which are alive, and which must stop.
        .target(
            name: "Senders", dependencies: ["Store", "APNs", "Model", "Platform", logging], swiftSettings: strict),
        // What a push holds: its payload, from templates, its headers and its id.
        .target(name: "Rendering", dependencies: ["Model", "Platform"], swiftSettings: strict),
        .target(
            name: "CampaignFiles", dependencies: ["OutputFiles", "Model", "Platform", yams], swiftSettings: strict),
        .target(name: "Store", dependencies: ["Model", "Platform"], swiftSettings: strict),
        .target(name: "RelationalStore", dependencies: ["Store", "Model"], swiftSettings: strict),
        .target(
            name: "SQLiteStore",
            dependencies: ["RelationalStore", "Store", "OutputFiles", "Model", "Platform", "CKernel", grdb, sqlite],
            swiftSettings: strict),
        .target(
            name: "PostgresStore",
            dependencies: ["RelationalStore", "Store", "Model", "Platform", "CKernel", "CPostgres"],
            swiftSettings: strict),
        .target(
            name: "APNs", dependencies: ["HTTP2", "Platform", "CCurl", "CKernel", "COpenSSL", logging],
            swiftSettings: strict),
        .target(name: "APNsSimulator", dependencies: ["HTTP2", "Platform", "COpenSSL"], swiftSettings: strict),
        .target(
            name: "HTTP2", dependencies: ["Platform", "CKernel", "CNGHTTP2", "COpenSSL", heap], swiftSettings: strict),
        .target(name: "FeedReader", dependencies: ["Model"], swiftSettings: strict),
        .target(name: "Parquet", swiftSettings: strict),
        .target(name: "Systemd", swiftSettings: strict),
        .target(name: "OutputFiles", swiftSettings: strict),
        // The pages for people who use Fanfare: text alone.
        .target(name: "Guide", swiftSettings: strict, plugins: ["EmbedTexts"]),
        .plugin(name: "EmbedTexts", capability: .buildTool(), path: "Sources/EmbedTexts"),
        .target(name: "COpenGuard"),
        .target(name: "CVersion", cSettings: [.define("FANFARE_VERSION", to: "\"\(version)\"")]),
        .target(
            name: "WebClient", dependencies: ["CCurl", "CKernel", "COpenSSL", "Model", "Platform"],
            swiftSettings: strict),
        .target(name: "Model", dependencies: ["Platform"], swiftSettings: strict + [.strictMemorySafety()]),
        // Clocks, signals, digests and codes: what every other target may use.
        .target(name: "Platform", dependencies: ["CKernel", "COpenSSL"], swiftSettings: strict),

        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CKernel"),
        .systemLibrary(name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),

        .testTarget(
            name: "ModelTests", dependencies: ["Model", "TestSupport"], exclude: ["Fixtures"], swiftSettings: strict),
        .testTarget(
            name: "CampaignFilesTests", dependencies: ["CampaignFiles", "Model", "Platform", "TestSupport"],
            exclude: ["Fixtures"],
            swiftSettings: strict),
        .testTarget(name: "GuideTests", dependencies: ["Guide"], swiftSettings: strict),
        .testTarget(name: "WebClientTests", dependencies: ["WebClient", "TestSupport"], swiftSettings: strict),
        .target(
            name: "TestSupport", dependencies: ["Model", "Platform", "COpenSSL"], path: "Tests/Support",
            exclude: ["Lone", "Scene"],
            swiftSettings: strict),
        .testTarget(
            name: "FeedReaderTests", dependencies: ["FeedReader", "Model", "Platform", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "OutputFilesTests", dependencies: ["OutputFiles", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "ParquetTests", dependencies: ["Parquet"], exclude: ["read_parquet.py"], swiftSettings: strict),
        .testTarget(name: "SystemdTests", dependencies: ["Systemd", "TestSupport"], swiftSettings: strict),
        .target(
            name: "StoreContract", dependencies: ["Store", "Model", "TestSupport"], path: "Tests/StoreContract",
            swiftSettings: strict),
        .testTarget(name: "StoreTests", dependencies: ["Store", "Model"], swiftSettings: strict),
        .testTarget(
            name: "SQLiteStoreTests",
            dependencies: ["StoreContract", "SQLiteStore", "Store", "Model", "Platform", "TestSupport", grdb, sqlite],
            exclude: ["Fixtures"], swiftSettings: strict),
        .testTarget(
            name: "PostgresStoreTests",
            dependencies: [
                "PostgresStore", "SQLiteStore", "Campaigns", "Daemon", "Sending", "RelationalStore", "Store",
                "StoreContract",
                "Model", "Platform",
                "TestSupport",
                logging,
            ],
            exclude: ["Fixtures"], swiftSettings: strict),
        .testTarget(name: "HTTP2Tests", dependencies: ["HTTP2", "Platform", "CNGHTTP2"], swiftSettings: strict),
        .testTarget(
            name: "APNsTests",
            dependencies: ["APNs", "APNsSimulator", "HTTP2", "COpenSSL", "TestSupport", "TransportContract", logging],
            swiftSettings: strict),
        // What every transport promises; it names none of them.
        .target(
            name: "TransportContract", dependencies: ["APNs", "APNsSimulator", "TestSupport"],
            path: "Tests/TransportContract",
            swiftSettings: strict),
        .testTarget(
            name: "APNsSimulatorTests",
            dependencies: ["APNsSimulator", "CNGHTTP2", "COpenSSL", "Model", "Platform", "TestSupport"],
            swiftSettings: strict),
        .target(
            name: "LonePipeline", dependencies: ["Sending", "Senders", "Store", "Model", logging],
            path: "Tests/Support/Lone", swiftSettings: strict),
        // A store in a folder, scripted lanes and a manual clock, for everybody above `Store` and `APNs`.
        .target(
            name: "SendingScene",
            dependencies: [
                "LonePipeline",
                "Sending", "Senders", "Rendering", "Store", "SQLiteStore", "APNs", "Model", "Platform", "TestSupport",
                logging,
            ],
            path: "Tests/Support/Scene", swiftSettings: strict),
        .testTarget(
            name: "SendingTests",
            dependencies: [
                "Sending", "Senders", "Rendering", "Store", "SQLiteStore", "APNs", "APNsSimulator", "Model", "Platform",
                "LonePipeline", "SendingScene", "TestSupport",
                grdb, logging,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "CampaignsTests",
            dependencies: [
                "Campaigns", "Daemon", "Sending", "Senders", "Rendering", "Store", "SQLiteStore", "APNs", "Model",
                "Platform", "SendingScene",
                "TestSupport",
            ],
            exclude: ["Golden"], swiftSettings: strict),
        .testTarget(
            name: "DaemonTests",
            dependencies: [
                "Daemon", "Campaigns", "Sending", "Senders", "Rendering", "Store", "SQLiteStore", "APNs", "WebClient",
                "Model", "Platform",
                "SendingScene", "TestSupport", grdb, logging,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "WebTests",
            dependencies: [
                "Web", "Campaigns", "CampaignFiles", "Daemon", "Guide", "Sending", "Senders", "Rendering", "Store",
                "SQLiteStore", "APNs", "Model", "Platform", "SendingScene",
                "TestSupport", grdb, hummingbird, httpTypes, metrics, coreMetrics, logging, nioCore, nioEmbedded,
                nioHTTP1, nioHTTPTypes, mustache,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "fanfare", "CampaignFiles", "Campaigns", "Sending", "Senders", "Rendering", "Store", "Web", "Guide",
                "APNs", "APNsSimulator", "Model", "Platform",
                "TestSupport", "WebClient", grdb, logging,
            ],
            exclude: ["recompute_report.py", "five_questions.py"],
            swiftSettings: strict),
        .testTarget(
            name: "CrashTests", dependencies: ["fanfare", "APNs", "Model", "Platform", "TestSupport", grdb],
            swiftSettings: strict),
        .target(name: "KillSwitch", path: "Tests/KillSwitch", publicHeadersPath: "."),
        .testTarget(name: "TidyTests", dependencies: ["CampaignFiles", "Model"], swiftSettings: strict),
        .executableTarget(
            name: "SendBenchmark",
            dependencies: [
                "LonePipeline", "Campaigns", "Sending", "Senders", "Rendering", "Store", "SQLiteStore", "APNs",
                "APNsSimulator",
                "Model", "Platform", argumentParser,
                logging,
            ],
            path: "Tests/SendBenchmark",
            swiftSettings: strict
        ),
    ]
)

// One suite while its code changes: ONLY_TESTS=SendingTests,StoreTests swift test --filter SendingTests. All others,
// and the benchmark, are left out of the build.
if let only = Context.environment["ONLY_TESTS"] {
    let names = only.split(separator: ",").map(String.init)
    package.targets.removeAll { ($0.type == .test && !names.contains($0.name)) || $0.name == "SendBenchmark" }
}
