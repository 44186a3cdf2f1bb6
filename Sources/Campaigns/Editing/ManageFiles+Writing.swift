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

    /// A text for a file, and the state of the file that its author has seen.
    package struct NewText: Sendable {
        package var kind: Kind
        package var name: String
        package var text: String
        package var condition: Condition?

        package init(_ kind: Kind, _ name: String, text: String, _ condition: Condition?) {
            self.kind = kind
            self.name = name
            self.text = text
            self.condition = condition
        }
    }

    /// Replaces the text of one file; see ``write(_:mayStart:by:now:)``.
    package func write(
        _ kind: Kind, _ name: String, text: String, _ condition: Condition?, mayStart: Bool, by actor: Actor,
        now: Timestamp
    ) async throws -> WrittenFileResult {
        let text = NewText(kind, name, text: text, condition)
        return try await write([text], mayStart: mayStart, by: actor, now: now)[0]
    }

    /// Replaces the texts of files that a person saves together, all or none, and records the write before it happens.
    /// Each text is checked together with the others. Throws ``FileRefusal`` if none is written.
    ///
    /// - Parameters:
    ///   - mayStart: whether the caller may start runs. If not, and one of the texts would change what starts
    ///     automatically, all of them wait for release, and the files stay unchanged.
    /// - Returns: the results in the order of the texts.
    package func write(
        _ texts: [NewText], mayStart: Bool, by actor: Actor, now: Timestamp
    ) async throws -> [WrittenFileResult] {
        try requireEditing()
        try finishSaves()
        let paths = try texts.map { try pathOrNew($0.kind, $0.name) }
        for (text, path) in zip(texts, paths) {
            try Self.requireSize(text.text, path)
            if isThere(text.kind, text.name), Self.text(of: path).text == nil { throw FileRefusal.noText(file: path) }
        }
        let drafts = Dictionary(zip(paths, texts.map(\.text))) { $1 }
        if !mayStart {
            for text in texts where try await startsAutomatically(text.kind, text.name, text: text.text) {
                return try await hold(texts, drafts, by: actor, now: now)
            }
        }
        var results: [WrittenFileResult] = []
        var files: [AtomicFile.Replacement] = []
        for (text, path) in zip(texts, paths) {
            let expected = try Self.expected(text.condition, at: path)
            let (errors, warnings) = try await errors(of: text, path: path, beside: drafts, now: now)
            guard errors.isEmpty else { throw FileRefusal.wrong(errors) }
            files.append(.init(path: path, text: text.text, expected: expected))
            results.append(
                WrittenFileResult(
                    name: text.name, path: path, etag: Digest.sha256Hex(Array(text.text.utf8)),
                    isNew: expected == .nothing, warnings: warnings.map { .init($0) }))
        }
        for (text, result) in zip(texts, results) {
            try await store.recordEvent(
                kind: .fileWritten, run: nil, actor: actor,
                detail: "\(text.kind.rawValue) \(text.name), \(text.text.utf8.count.grouped) bytes",
                files: [FileHash.absolute(result.path): result.etag], now: now)
        }
        if let other = try AtomicFile.write(Self.templatesFirst(files, texts.map(\.kind)), in: folders) {
            throw Self.refusal(other.found, other.expected, other.path)
        }
        return results
    }

    /// The folders of which readers read files together.
    var folders: [String] { [configuration.campaigns, configuration.templates] }

    /// Finishes a save of several files that a crash interrupted.
    func finishSaves() throws { try AtomicFile.reading(folders) {} }

    /// Returns the files in the order in which they are written. A reader without ``AtomicFile`` that reads in between
    /// sees new templates with an old campaign, never a new campaign with an old template.
    static func templatesFirst(_ files: [AtomicFile.Replacement], _ kinds: [Kind]) -> [AtomicFile.Replacement] {
        let files = zip(files, kinds)
        return files.filter { $1 == .template }.map(\.0) + files.filter { $1 == .campaign }.map(\.0)
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
