import ArgumentParser

struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Import, export, look up and prune devices.",
        subcommands: [
            DevicesImportCommand.self, DevicesExportCommand.self, DevicesShowCommand.self, DevicesPruneCommand.self,
        ])
}
