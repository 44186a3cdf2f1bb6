/// Who is told that a text of a campaign, template or configuration file is read. Such a text is written by others, and one
/// of the largest size takes up to a quarter of a second, so that a process that serves many requests reads it on threads
/// of its own.
package enum TextWork {
    /// Told of each text that is read in the task; `nil` where texts may be read.
    @TaskLocal package static var reader: Reader?

    /// Not a function by itself: an optimized build loses the type of a task local of a function type, and ends with a
    /// segmentation fault where such a value is set (Swift 6.3).
    package struct Reader: Sendable {
        package let wasRead: @Sendable () -> Void

        package init(_ wasRead: @escaping @Sendable () -> Void) { self.wasRead = wasRead }
    }
}
