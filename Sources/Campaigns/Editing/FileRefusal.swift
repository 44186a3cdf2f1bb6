import Foundation
package import Model

/// The reason why a campaign or template file is not written. In each case the file stays unchanged.
package enum FileRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    case editingIsOff
    /// The caller gave no condition. A writer must say which text of the file it has seen.
    case unconditional(file: String, etag: String?)
    /// The file holds a text that the caller has not seen: another user saved it meanwhile, or the caller expected no
    /// file.
    ///
    /// - Parameters:
    ///   - etag: the ETag of the current text; `nil` if the file is gone.
    case changedMeanwhile(file: String, etag: String?)
    case wrong([Diagnostic])
    case tooLarge(file: String, bytes: Int)
    /// A new file was requested under the name of an existing one.
    case taken(file: String)
    /// A template to delete is in use.
    ///
    /// - Parameter users: the users in words; empty if the caller may not see them.
    case used(file: String, by: [String])
    /// The existing file is not text, so that it cannot be shown to a caller who wants to replace it.
    case noText(file: String)
    /// A name that no file may have, or a path that Fanfare does not write to.
    case unsuitable(String)

    package var description: String {
        switch self {
        case .editingIsOff:
            "web editing is off (`http.editing`); edit the file on disk, where "
                + "it is kept, or ask the operator"
        case .unconditional(let file, let etag?):
            "\(file) already exists; send If-Match: \"\(etag)\" to replace this text"
        case .unconditional(let file, nil): "\(file) does not exist yet; send If-None-Match: * to create it"
        case .changedMeanwhile(let file, _?):
            "\(file) was changed after you opened it and was not overwritten: open it, compare the two texts, and save "
                + "yours again to replace it"
        case .changedMeanwhile(let file, nil):
            "\(file) was deleted after you opened it; to keep your text, save it as a new file"
        case .wrong(let diagnostics):
            diagnostics.map(\.description).joined(separator: "\n") + "\nnot saved: correct the errors first"
        case .tooLarge(let file, let bytes):
            "\(file) would have \(bytes.grouped) bytes, but the limit is \(ManageFiles.bytesMax.grouped); shorten it"
        case .taken(let file): "\(file) already exists and was not overwritten; give the new file another name"
        case .used(let file, let users):
            "\(file) was not deleted: \(users.isEmpty ? "a campaign" : users.joined(separator: ", ")) uses it; name "
                + "another template there first"
        case .noText(let file):
            "\(file) cannot be read as UTF-8 text, so it cannot be shown or changed here; save it as UTF-8 where it "
                + "is kept"
        case .unsuitable(let why): why
        }
    }
}

/// The rules for the name of a campaign or template file that is created through the web. A name contains no path,
/// and no character that a shell or an editor would interpret.
package enum FileName {
    private static let bytesMax = 100

    /// Returns the file name for a title that a person typed, such as `winter-special` for `Winter Special`. A text
    /// that is a file name, or that has no letter of one, stays as it is.
    package static func name(for title: String) -> String {
        let title = title.trimmingCharacters(in: .whitespaces)
        guard problem(with: title) != nil else { return title }
        let name = title.asName(lettersMax: 60)
        return name.isEmpty ? title : name
    }

    /// Returns the problem with a name, in words; `nil` if there is none.
    package static func problem(with name: String) -> String? {
        let letters = name.unicodeScalars.allSatisfy { scalar in
            ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar) || ("0"..."9").contains(scalar)
                || scalar == "-" || scalar == "_" || scalar == "."
        }
        let isGood =
            letters && !name.isEmpty && name.utf8.count <= bytesMax && !name.hasPrefix(".")
            && !name.hasPrefix("-") && !name.contains("..") && !name.hasSuffix(".yaml") && !name.hasSuffix(".yml")
        return isGood
            ? nil
            : "\"\(name)\" is not a valid file name; use letters, digits, - and _, at most \(bytesMax), without .yaml: "
                + "new-podcast"
    }
}
