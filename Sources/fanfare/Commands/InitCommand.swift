import ArgumentParser
import Foundation
import Campaigns

struct InitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Write a commented campaign, template and configuration to start from.",
        discussion: "Files that are there already are left alone: then nothing is written, and exit code 65 says so.")

    @Argument(help: "A folder; made if it is not there.", completion: .directory) var directory = "."

    func run() throws {
        let folder = directory.hasSuffix("/") && directory != "/" ? String(directory.dropLast()) : directory
        let paths = StarterFiles.all.map { (path: "\(folder)/\($0.name)", text: $0.text) }
        let known = paths.map(\.path).filter { FileManager.default.fileExists(atPath: $0) }
        guard known.isEmpty else {
            throw Failure(
                .invalidData, "\(known.joined(separator: ", ")) there already; nothing was written, name another folder"
            )
        }
        for (path, text) in paths { try Self.write(text, to: path) }
        let cd = folder == "." ? "" : "cd \(folder) && "
        Console.print(
            paths.map { "wrote \($0.path)" }.joined(separator: "\n") + """


                Next: put your topic, team_id, key_id and key_path into fanfare.yaml, and then
                  \(cd)fanfare validate
                  fanfare devices import devices.csv
                  fanfare segments define podcast-fans 'tag("podcast")'
                  fanfare plan new-podcast
                """)
    }

    private static func write(_ text: String, to path: String) throws {
        do {
            try FileManager.default.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .withoutOverwriting)
        } catch {
            throw Failure(
                .configuration, "cannot write \(path): \(error.localizedDescription); check the folder's rights")
        }
    }
}

/// The files of a new installation: the repository's examples, with the paths of one folder.
enum StarterFiles {
    static var all: [(name: String, text: String)] {
        [("fanfare.yaml", configuration)] + ExampleFiles.all.filter { $0.name.hasSuffix("/new-podcast.yaml") }
    }

    /// Everything beside the configuration file instead of in the system's folders.
    private static var configuration: String {
        String(decoding: PackageResources.configuration_yaml, as: UTF8.self)
            .replacing("/etc/fanfare/fanfare.yaml", with: "\u{0}")
            .replacing("/var/lib/fanfare/", with: "").replacing("/etc/fanfare/", with: "")
            .replacing("\u{0}", with: "/etc/fanfare/fanfare.yaml")
    }
}
