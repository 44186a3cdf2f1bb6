import Foundation
import Testing

/// A reader finds a type by the name of its file.
struct FileNameTests {
    @Test func `a file of Sources is named for what it declares`() throws {
        let strangers = try `Tidiness`.swiftFiles(under: "Sources").filter { file in
            let types = Self.types(in: try String(contentsOf: file, encoding: .utf8))
            return !Self.isNamed(file.deletingPathExtension().lastPathComponent, for: types)
        }.map { $0.lastPathComponent }
        #expect(strangers.isEmpty, "\(strangers.sorted().joined(separator: "\n"))")
    }

    @Test(arguments: [
        ("Run", ["Run"], true), ("Runs", ["Run"], true), ("RunRow", ["Run"], true), ("Run", ["RunRow"], true),
        ("RunCommands", ["PauseCommand"], true), ("Store+Runs", ["Store"], true), ("Store+Runs", ["Run"], false),
        ("Entries", ["Entry"], true), ("Checks", ["Inspection"], false), ("Ownership", ["SenderName"], false),
    ])
    func `a file name is a type's name, its plural, its kind, or a type and a topic`(
        name: String, types: [String], isNamed: Bool
    ) {
        #expect(Self.isNamed(name, for: Set(types)) == isNamed)
    }

    private static func types(in text: String) -> Set<String> {
        let pattern =
            /^ *(?:[a-z]+ |@[A-Za-z]+ )*(?:struct|enum|class|protocol|actor|extension|typealias) +([A-Za-z0-9_.]+)/
        let names = text.matches(of: pattern.anchorsMatchLineEndings()).map { String($0.1) }
        return Set(names + names.compactMap { $0.split(separator: ".").last.map(String.init) })
    }

    /// `Type+Topic` extends the type. Any other name shares its beginning, end or last word with a type.
    private static func isNamed(_ name: String, for types: Set<String>) -> Bool {
        if let plus = name.firstIndex(of: "+") { return types.contains(String(name[..<plus])) }
        let kind = singular(lastWord(name))
        return types.contains { type in
            type.hasPrefix(singular(name)) || name.hasPrefix(type) || type.hasSuffix(name)
                || singular(lastWord(type)) == kind
        }
    }

    private static func singular(_ word: String) -> String {
        if word.hasSuffix("ies") { return word.dropLast(3) + "y" }
        return word.hasSuffix("s") && !word.hasSuffix("ss") ? String(word.dropLast()) : word
    }

    private static func lastWord(_ name: String) -> String {
        name.lastIndex(where: \.isUppercase).map { String(name[$0...]) } ?? name
    }
}
