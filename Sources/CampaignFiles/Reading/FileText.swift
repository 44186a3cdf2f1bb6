import Foundation
import Model

/// Reads a file that a person wrote, whole, with a clear diagnostic when that is not possible.
enum FileText {
    /// Larger than any file of this kind can sensibly be.
    static let bytesMax = 1 << 20

    static func load(_ path: String) -> (text: String?, diagnostics: [Diagnostic]) {
        func refused(_ what: String, _ advice: String) -> (String?, [Diagnostic]) {
            (nil, [Diagnostic(path: path, what: what, advice: advice)])
        }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            return refused("no such file", "check the path")
        }
        guard !isFolder.boolValue else { return refused("is a folder", "name a file inside it") }
        guard let file = FileHandle(forReadingAtPath: path) else {
            return refused("cannot be read", "check its permissions")
        }
        do {
            let data = try file.read(upToCount: bytesMax + 1) ?? Data()
            try file.close()
            guard data.count <= bytesMax else {
                return refused("is larger than \(bytesMax) bytes", "make sure that it is the right file")
            }
            guard let text = String(validating: data, as: UTF8.self) else {
                return refused("is not UTF-8 text", "save it as UTF-8")
            }
            return (text, [])
        } catch {
            return refused("cannot be read (\(error.localizedDescription))", "check the disk and its permissions")
        }
    }

    /// Without the byte order mark that some editors put first.
    static func withoutMark(_ text: String) -> String {
        guard text.unicodeScalars.first == "\u{FEFF}" else { return text }
        return String(text.unicodeScalars.dropFirst())
    }

    /// The root object of a file; nil, with the reason in `findings`, when there is none.
    static func root(of text: String, into findings: Findings, advice: String) -> Field? {
        guard let node = YAMLDocument.read(text, into: findings), !node.isNothing else {
            if !findings.hasErrors {
                findings.error("the file is empty", advice, at: Place(line: 1, column: 1))
            }
            return nil
        }
        return Field(name: "", node: node, findings: findings)
    }
}
