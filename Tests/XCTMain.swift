import Testing

/// The entry of the tests' program. SwiftPM would make its own from an index of all modules, to look for tests of XCTest.
/// There are none, and the index takes time to write.
@main struct TestEntry {
    static func main() async {
        let arguments = CommandLine.arguments
        if arguments.contains("swift-testing") { await Testing.__swiftPMEntryPoint() as Never }
        // `swift test` asks for a list of XCTest's tests when it has a filter.
        if arguments.contains("--dump-tests-json") { print("{\"tests\": []}") }
    }
}
