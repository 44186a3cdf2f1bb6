/// A hook that is called when a text of a campaign, template or configuration file is parsed. Parsing the largest
/// allowed text takes up to a quarter of a second. A process that serves many requests therefore parses on separate
/// threads.
package enum TextWork {
    /// Called for each text that the current task parses. `nil` in a task that may parse texts unreported.
    @TaskLocal package static var reader: Reader?

    /// A struct around a function. An optimized build loses the type of a task local of a function type. It then
    /// crashes with a segmentation fault when such a value is set (Swift 6.3).
    package struct Reader: Sendable {
        package let wasRead: @Sendable () -> Void

        package init(_ wasRead: @escaping @Sendable () -> Void) { self.wasRead = wasRead }
    }
}
