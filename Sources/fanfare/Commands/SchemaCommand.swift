import ArgumentParser
import CampaignFiles

struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Print the JSON Schema of a kind of file, for editors that check while you write.",
        discussion: """
            With the YAML language server (VS Code, Neovim, Helix and others) save it and name it in the first line:

              fanfare schema campaign > campaign.schema.json
              # yaml-language-server: $schema=../campaign.schema.json
            """)

    enum Kind: String, ExpressibleByArgument, CaseIterable {
        case campaign, template, config
    }

    @Argument(help: "campaign, template or config.") var kind: Kind

    func run() throws {
        let file: JSONSchema.File =
            switch kind {
            case .campaign: .campaign
            case .template: .template
            case .config: .configuration
            }
        Console.print(String(JSONSchema.text(for: file).dropLast()))
    }
}
