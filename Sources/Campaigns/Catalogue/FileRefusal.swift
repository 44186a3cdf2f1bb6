package import Model

/// Why a campaign or template file is not written. Whatever it is, the file stands as it stood.
package enum FileRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    case editingIsOff
    /// Whoever replaces a file says which text they have seen.
    case unconditional(file: String, etag: String?)
    /// The file holds a text that the caller has not seen: another user saved it meanwhile, or the file was to be new.
    ///
    /// - Parameters:
    ///   - etag: of the text that is there now; nil: the file is gone.
    case changedMeanwhile(file: String, etag: String?)
    case wrong([Diagnostic])
    case tooLarge(file: String, bytes: Int)
    /// A new file was to be made under the name of one that is there.
    case taken(file: String)
    /// What is there is no text that could be shown to whoever replaces it.
    case noText(file: String)
    /// A name or a place that no file is written to.
    case unsuitable(String)

    package var description: String {
        switch self {
        case .editingIsOff:
            "files are not written by way of the web here: http.editing is off in the configuration; change the file where "
                + "it is kept, or ask whoever runs Fanfare"
        case .unconditional(let file, let etag?):
            "\(file) is there already; say with If-Match: \"\(etag)\" that it is this text you replace"
        case .unconditional(let file, nil): "\(file) is not there yet; say with If-None-Match: * that it is to be new"
        case .changedMeanwhile(let file, _?):
            "\(file) holds a text that you have not seen; nothing is overwritten: open it, compare the two texts, and save "
                + "yours again if it is to count"
        case .changedMeanwhile(let file, nil):
            "\(file) is gone since you opened it; save it as a new file if it is meant"
        case .wrong(let diagnostics):
            diagnostics.map(\.description).joined(separator: "\n") + "\nnot saved: a file with errors would not be sent"
        case .tooLarge(let file, let bytes):
            "\(file) would have \(bytes.grouped) bytes, at most \(ManageFiles.bytesMax.grouped) are taken"
        case .taken(let file): "\(file) is there already, and nothing is written over it; give the new one another name"
        case .noText(let file):
            "\(file) cannot be read as UTF-8 text, and so it is neither shown nor changed from here; save it as UTF-8 where it "
                + "is kept"
        case .unsuitable(let why): why
        }
    }
}

/// What a campaign or template file may be called when it is made by way of the web: without a path, and nothing that a
/// shell or an editor would read as something else.
package enum FileName {
    private static let bytesMax = 100

    /// In words; nil: there is none.
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
            : "\"\(name)\" is no name for a file; use letters, digits, - and _, at most \(bytesMax), without .yaml: "
                + "new-podcast"
    }
}
