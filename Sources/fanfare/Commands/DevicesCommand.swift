import ArgumentParser

struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Import, export and look up devices.",
        subcommands: [DevicesImportCommand.self, DevicesExportCommand.self, DevicesShowCommand.self])
}
