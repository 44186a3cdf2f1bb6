import CampaignFiles
package import Model
import Platform
import Store

/// The writing of files, or their holding for release.
extension ManageFiles {
    /// The state of the file that the writer has seen.
    package enum Condition: Hashable, Sendable {
        case new
        /// The SHA-256 of the file's text is `etag`.
        case unchanged(etag: String)
    }

    /// Replaces the text of a file, and records the write before it happens. Throws ``FileRefusal`` if the file is not
    /// written.
    ///
    /// - Parameters:
    ///   - beside: the texts that the caller writes to other files next, by path. The text is checked together with
    ///     them.
    ///   - mayStart: whether the caller may start runs. If not, a text that would change what starts automatically
    ///     waits for release, and the file stays unchanged.
    package func write(
        _ kind: Kind, _ name: String, text: String, _ condition: Condition?, beside: [String: String] = [:],
        mayStart: Bool, by actor: Actor, now: Timestamp
    ) async throws -> WrittenFileResult {
        try requireEditing()
        let path = try pathOrNew(kind, name)
        try Self.requireSize(text, path)
        if isThere(kind, name), Self.text(of: path).text == nil { throw FileRefusal.noText(file: path) }
        if !mayStart, try await startsAutomatically(kind, name, text: text) {
            return try await hold(kind, name, text: text, condition, beside: beside, by: actor, now: now)
        }
        let expected = try Self.expected(condition, at: path)
        let (errors, warnings) = try await errors(of: text, kind, name, path: path, beside: beside, now: now)
        guard errors.isEmpty else { throw FileRefusal.wrong(errors) }
        let hash = Digest.sha256Hex(Array(text.utf8))
        try await store.recordEvent(
            kind: .fileWritten, run: nil, actor: actor,
            detail: "\(kind.rawValue) \(name), \(text.utf8.count.grouped) bytes",
            files: [FileHash.absolute(path): hash], now: now)
        if let found = try AtomicFile.write(text, to: path, expecting: expected) {
            throw Self.refusal(found, expected, path)
        }
        return WrittenFileResult(
            name: name, path: path, etag: hash, isNew: expected == .nothing, warnings: warnings.map { .init($0) })
    }

    /// Returns the entry at the path, if it is the one that the condition expects. Throws otherwise.
    static func expected(_ condition: Condition?, at path: String) throws -> AtomicFile.Entry {
        let found = try AtomicFile.entry(at: path)
        guard let condition else {
            if case .file(let hash) = found { throw FileRefusal.unconditional(file: path, etag: hash) }
            throw found == .other ? refusal(found, .nothing, path) : FileRefusal.unconditional(file: path, etag: nil)
        }
        let expected: AtomicFile.Entry =
            switch condition {
            case .new: .nothing
            case .unchanged(let etag): .file(hash: etag)
            }
        guard found == expected else { throw refusal(found, expected, path) }
        return expected
    }

    static func refusal(
        _ found: AtomicFile.Entry, _ expected: AtomicFile.Entry, _ path: String
    ) -> FileRefusal {
        switch found {
        case .nothing: .changedMeanwhile(file: path, etag: nil)
        case .file(let hash): .changedMeanwhile(file: path, etag: hash)
        case .other: .unsuitable("\(path) is a link or not a regular file; edit it on disk, not through the web")
        }
    }
}
