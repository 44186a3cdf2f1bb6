/// Where something a person wrote stands, for diagnostics.
package struct Place: Hashable, Sendable {
    /// From 1; 0 when it has no place inside the file.
    package var line: Int
    /// From 1, counted in Unicode scalars.
    package var column: Int
    /// Named in place of the file's path when the value came from elsewhere: an environment variable.
    package var source: String?

    package init(line: Int = 0, column: Int = 0, source: String? = nil) {
        self.line = line
        self.column = column
        self.source = source
    }
}
