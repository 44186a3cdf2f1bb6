import CampaignFiles
import Foundation
import Model
import Testing
@Test func zgen() throws {
    for path in try Files.paths(in: Files.fixtures.appending(path: "bad"), ending: ".yaml") {
        let file = URL(fileURLWithPath: path).lastPathComponent
        let text = try Files.text(path)
        let d =
            file.hasPrefix("campaign")
            ? CampaignFile.read(text: text, path: file).1
            : file.hasPrefix("template")
                ? TemplateFile.read(text: text, path: file).1 : ConfigurationFile.read(text: text, path: file).1
        try (d.map(\.description).joined(separator: "\n") + "\n").write(
            toFile: path.replacing(".yaml", with: ".expected"), atomically: true, encoding: .utf8)
    }
}
