/// Who is told that a text of a campaign, template or configuration file is read. Such a text is written by others, and one
/// of the largest size takes up to a quarter of a second, so that a process that serves many requests reads it on threads
/// of its own.
package enum TextWork {
    /// Called for each text that is read in the task; `nil` where texts may be read.
    @TaskLocal package static var onRead: (@Sendable () -> Void)?
}
