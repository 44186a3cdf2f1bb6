import Model
import Store

/// The stable shape of a change that waits for release.
package struct ChangeResult: Codable, Hashable, Sendable {
    package var id: Int64
    /// `campaign` or `template`.
    package var kind: String
    package var name: String
    package var path: String
    package var author: String
    package var askedAt: String
    /// SHA-256 of the waiting text.
    package var etag: String
    package var isNew: Bool
    /// Whether the file has changed since the author saw it, so that the change cannot be released.
    package var isOutdated: Bool
    /// Whether the file has this text already: a release was interrupted, or a person wrote it into the file. Absent
    /// if not.
    package var isWritten: Bool?

    /// The numbers of the changes that are released with this one; absent if there is none.
    package var together: [Int64]?

    init(_ change: PendingChange, with others: [PendingChange], _ files: ManageFiles) throws {
        id = change.id
        kind = change.kind
        name = change.name
        path = try files.pathOrNew(files.kind(of: change), change.name)
        author = change.author.name
        askedAt = change.askedAt.iso8601
        etag = change.hash
        isNew = change.base == nil
        let found = try AtomicFile.entry(at: path)
        isOutdated = found != change.expected && found != .file(hash: change.hash)
        isWritten = found == .file(hash: change.hash) ? true : nil
        together = others.isEmpty ? nil : others.map(\.id)
    }

    /// The change in one line, for a person to read.
    package var summary: String { summary(by: author, at: askedAt) }

    /// The same line with the author and the time in other words.
    package func summary(by author: String, at time: String) -> String {
        "change \(id) of \(kind) \(name), by \(author) at \(time), waits for release by an account that may start runs"
            + (together.map { ", together with \($0.changeNumbers)" } ?? "")
            + (isOutdated ? "; the file has changed since" : "")
            + (isWritten == true ? "; the file has this text already: release the change to end it" : "")
    }
}

/// The stable shape of one change with its text.
package struct ChangeDetailResult: Codable, Hashable, Sendable {
    package var change: ChangeResult
    package var text: String
    /// The file's text now; absent if there is none.
    package var current: String?
    /// This text and those of `together`. A release or a rejection names them in `seen`.
    package var texts: [ChangeText]
}

/// The identity of one waiting text.
package struct ChangeText: Codable, Hashable, Sendable {
    /// The number of the change.
    package var id: Int64
    /// SHA-256 of the text.
    package var etag: String

    package init(id: Int64, etag: String) {
        self.id = id
        self.etag = etag
    }
}

extension [PendingChange] {
    var texts: [ChangeText] { map { ChangeText(id: $0.id, etag: $0.hash) } }
}

extension [Int64] {
    /// Such as `change 3` or `changes 3 and 4`.
    package var changeNumbers: String {
        count == 1
            ? "change \(self[0])"
            : "changes \(dropLast().map(String.init).joined(separator: ", ")) and \(self[count - 1])"
    }
}
