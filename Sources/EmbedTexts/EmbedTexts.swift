import Foundation
import PackagePlugin

/// Embeds the text files of a target in the program. The target gets a type `EmbeddedFile` with the text of each file.
///
/// The texts become string literals. SwiftPM's own `embedInCode` makes an array literal with an element for each byte,
/// which takes the compiler a hundred times as long.
@main
struct EmbedTexts: BuildToolPlugin {
    /// The folders of a target whose files are embedded.
    private static let folders = ["Assets", "Templates", "Guide.docc", "Examples", "Units"]

    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let files = try Self.folders.map { target.directoryURL.appending(path: $0) }
            .filter { FileManager.default.fileExists(atPath: $0.path) }
            .flatMap { try FileManager.default.contentsOfDirectory(at: $0, includingPropertiesForKeys: nil) }
            .sorted { $0.path < $1.path }
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedFile.swift")
        return [
            .buildCommand(
                displayName: "Embedding \(files.count) texts in \(target.name)",
                executable: URL(filePath: "/bin/sh"),
                arguments: ["-c", Self.script, "embed", output.path] + files.map(\.path),
                inputFiles: files, outputFiles: [output])
        ]
    }

    /// Writes the source file that the first argument names, with the files that the other arguments name.
    private static let script = #####"""
        set -e
        exec >"$1"
        shift
        cat <<'END'
        /// A text file that is embedded in the program.
        enum EmbeddedFile {
            /// Returns the text of the file with this name. There is such a file, or the program is made wrongly.
            static func text(_ name: String) -> String {
                guard let text = texts[name] else { preconditionFailure("no file \(name) is embedded") }
                return text
            }

            private static let texts: [String: String] = [
        END
        for file; do
            printf '"%s": ####"""\n' "${file##*/}"
            cat "$file"
            printf '\n"""####,\n'
        done
        printf '    ]\n}\n'
        """#####
}
