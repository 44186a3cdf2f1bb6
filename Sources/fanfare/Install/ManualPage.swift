import ArgumentParser
import Foundation

/// The manual page `fanfare(1)`, generated from the definitions of the commands, with all `--help` texts.
struct ManualPage {
    let root: CommandDefinition
    let version: String
    /// The folder of this installation's configuration.
    let settings: String

    init(settings: String) throws {
        root = try CommandDefinition.fanfare()
        version = Fanfare.configuration.version
        self.settings = settings
    }

    /// The page in the macros of man(7), which every `man` supports.
    var text: String {
        let head = [
            ".TH FANFARE 1 \"\" \"fanfare \(version)\" \"User Commands\"",
            ".SH NAME", "fanfare \\- \(Roff.text(root.abstract ?? ""))",
            ".SH SYNOPSIS", ".B fanfare", ".I command", ".RI [ options ]",
            ".SH DESCRIPTION",
        ]
        let commands = [".SH COMMANDS"] + root.leaves.flatMap(section)
        let lines = head + Roff.paragraphs(root.discussion ?? "") + commands + environment + files + seeAlso
        return lines.joined(separator: "\n") + "\n"
    }

    private func section(_ name: String, _ command: CommandDefinition) -> [String] {
        let arguments = command.ownArguments
        let usage = ([name] + arguments.map(\.usage)).joined(separator: " ")
        return [".SS \"\(Roff.text(usage))\"", Roff.line(command.abstract ?? "")]
            + (command.discussion.map { [".PP"] + Roff.paragraphs($0) } ?? [])
            + arguments.flatMap { [".TP", $0.heading, Roff.line($0.explanation)] }
    }

    private var environment: [String] {
        [
            ".SH ENVIRONMENT", ".TP", ".B FANFARE_CONFIG", "The configuration file, unless --config names one.",
            ".TP", ".BR FANFARE_STORE \", \" FANFARE_CAMPAIGNS \", ...\"",
            "A configuration key in capitals; it overrides the file.",
            ".TP", ".B PGPASSFILE", "The file with the password of a store on PostgreSQL, if its URL names none.",
            ".TP", ".BR STATE_DIRECTORY \", \" XDG_STATE_HOME",
            "The folder for the locks and journals of the senders of a PostgreSQL store (default: "
                + "/var/lib/fanfare if it is writable, or ~/.local/state/fanfare).",
            ".TP", ".B https_proxy", "Used with \"transport: curl\"; the native transport refuses to bypass it.",
        ]
    }

    private var files: [String] {
        [
            ".SH FILES", ".TP", ".I \(Roff.text("\(settings)/fanfare.yaml"))",
            "The configuration, with every key explained.", ".TP", ".I \(Roff.text("\(settings)/keys"))",
            "Signing keys, readable by root only; systemd gives the services copies.",
            ".TP", ".I /var/lib/fanfare/fanfare.sqlite", "The store, unless the configuration names a database.",
        ]
    }

    private var seeAlso: [String] {
        let files = FileManualPages(settings: settings).all.map { ".BR \(Roff.text($0.name)) (5)," }
        return [".SH \"SEE ALSO\""] + files + [".BR systemctl (1),", ".BR systemd.timer (5),", ".BR journalctl (1)"]
    }
}

/// A command as ArgumentParser describes it to tools.
struct CommandDefinition: Decodable {
    var commandName: String
    var abstract: String?
    var discussion: String?
    var shouldDisplay: Bool?
    var subcommands: [CommandDefinition]?
    var arguments: [ArgumentDefinition]?

    private struct Tool: Decodable {
        var command: CommandDefinition
    }

    /// Returns the whole tree of commands.
    static func fanfare() throws -> CommandDefinition {
        try JSONDecoder().decode(Tool.self, from: Data(Fanfare._dumpHelp().utf8)).command
    }

    /// The subcommands that `--help` lists, in its order.
    var shown: [CommandDefinition] {
        (subcommands ?? []).filter { $0.shouldDisplay != false && $0.commandName != "help" }
    }

    /// The commands without subcommands, with their full names, such as `fanfare devices show`.
    var leaves: [(name: String, command: CommandDefinition)] {
        guard !shown.isEmpty else { return [(commandName, self)] }
        return shown.flatMap { $0.leaves.map { ("\(commandName) \($0.name)", $0.command) } }
    }

    /// The displayed arguments, except `--help` and `--version`, which every command has.
    var ownArguments: [ArgumentDefinition] {
        (arguments ?? []).filter { $0.shouldDisplay && !["help", "version"].contains($0.preferredName?.name) }
    }
}

/// An argument, option or flag of a command.
struct ArgumentDefinition: Decodable {
    enum Kind: String, Decodable {
        case positional, option, flag
    }

    struct Name: Decodable {
        var kind: String
        var name: String

        var text: String { (kind == "long" ? "--" : "-") + name }
    }

    var kind: Kind
    var shouldDisplay: Bool
    var isOptional: Bool
    var isRepeating: Bool
    var names: [Name]?
    var preferredName: Name?
    var valueName: String?
    var defaultValue: String?
    var allValues: [String]?
    var abstract: String?
    var discussion: String?

    private var value: String { valueName ?? preferredName?.name ?? "value" }

    /// The argument as in the command's synopsis.
    var usage: String {
        let repeated = isRepeating ? " ..." : ""
        let text =
            switch kind {
            case .positional: "<\(value)>\(repeated)"
            case .option: "\(preferredName?.text ?? "") <\(value)>\(repeated)"
            case .flag: preferredName?.text ?? ""
            }
        return isOptional ? "[\(text)]" : text
    }

    /// All names of the argument, in bold, and its value.
    var heading: String {
        let value = "\\fI\(Roff.text(value))\\fR"
        if kind == .positional { return value }
        // The short name comes first.
        let names = (names ?? []).sorted { $0.name.count < $1.name.count }
        let all = names.map { "\\fB\(Roff.text($0.text))\\fR" }.joined(separator: ", ")
        return kind == .flag ? all : "\(all) \(value)"
    }

    var explanation: String {
        let values = allValues.flatMap { $0.isEmpty ? nil : "One of: \($0.joined(separator: ", "))." }
        let usual = defaultValue.flatMap { kind == .flag ? nil : "(default: \($0))" }
        return [abstract, discussion, values, usual].compactMap(\.self).joined(separator: " ")
    }
}

/// Writes text for `man`, escaped so that no part is a macro.
enum Roff {
    static func text(_ text: String) -> String {
        text.replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("\"", with: "\\(dq")
    }

    /// Returns the text as one line that is not a macro.
    static func line(_ text: String) -> String {
        let text = self.text(text.split(separator: "\n").joined(separator: " "))
        return text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" + text : text
    }

    /// Returns lines for `man`. Lines that start with blanks keep their layout, and other lines flow.
    static func paragraphs(_ text: String) -> [String] {
        var lines: [String] = []
        var isShown = false
        for part in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let isIndented = part.hasPrefix("  ")
            if isIndented != isShown, !part.isEmpty {
                lines += isIndented ? [".RS 4", ".nf"] : [".fi", ".RE"]
                isShown = isIndented
            }
            if part.isEmpty {
                if !isShown { lines.append(".PP") }
            } else {
                lines.append(line(String(part.drop { $0 == " " })))
            }
        }
        return isShown ? lines + [".fi", ".RE"] : lines
    }
}
