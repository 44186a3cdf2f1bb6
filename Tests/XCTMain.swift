import Testing

/// The entry of the tests' program. SwiftPM would make its own from an index of all modules, to look for tests of XCTest.
/// There are none, and the index takes time to write.
@main struct TestEntry {
    static func main() async {
        if CommandLine.arguments.contains("xctest") { return }
        await Testing.__swiftPMEntryPoint() as Never
    }
}
