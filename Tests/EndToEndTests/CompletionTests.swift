import Foundation
import TestSupport
import Testing

@testable import fanfare

/// What `install` puts in place for whoever types: tried in the shells themselves, where they are.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `What is put in place for shells` {
    private static let shared = Result { () throws -> TemporaryDirectory in
        let folder = try TemporaryDirectory()
        let result = try Program.run(["install", "--prefix", folder.path + "/usr"], in: folder)
        try #require(result.status == 0, "\(result.errors)")
        _ = try folder.write("campaign: spring\n", to: "campaigns/spring.yaml")
        return folder
    }

    private static func has(_ shell: String) -> Bool { path(of: shell) != nil }

    private static func path(of program: String) -> String? {
        ["/usr/bin", "/bin", "/usr/local/bin"].map { "\($0)/\(program)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// With the installed program first in the path, since what is offered may be asked of it.
    private func shell(_ name: String, _ arguments: [String]) throws -> Program.Result {
        let folder = try Self.shared.get()
        let path = "\(folder.path)/usr/bin:\(ProcessInfo.processInfo.environment["PATH"] ?? "")"
        return try Program.run(
            arguments, in: folder,
            environment: [
                "PATH": path, "HOME": folder.path, "XDG_DATA_DIRS": "\(folder.path)/usr/share", "TERM": "dumb",
            ], program: URL(fileURLWithPath: try #require(Self.path(of: name))))
    }

    /// What is typed, and what has to be offered.
    static let rows: [(typed: String, offered: [String])] = [
        ("fanfare pau", ["pause"]),
        ("fanfare devices pr", ["prune"]),
        ("fanfare report --for", ["--format"]),
        ("fanfare serve --log-level d", ["debug"]),
        ("fanfare doctor --net", ["--network"]),
    ]

    /// What the program itself is asked for. fish asks it only where somebody types.
    static let names: [(typed: String, offered: [String])] = [
        ("fanfare report spr", ["spring"]), ("fanfare status spr", ["spring"]),
    ]

    @Test(.enabled(if: has("bash"), "bash is not on this machine"), arguments: rows + names)
    func `bash offers what can be typed next`(row: (typed: String, offered: [String])) throws {
        let words = row.typed.split(separator: " ")
        let script = """
            source usr/share/bash-completion/completions/fanfare
            COMP_LINE='\(row.typed)' COMP_POINT=\(row.typed.count) COMP_CWORD=\(words.count - 1)
            COMP_WORDS=(\(row.typed))
            _fanfare fanfare '\(words.last ?? "")' '\(words.dropLast().last ?? "")'
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let result = try shell("bash", ["--norc", "-c", script])
        let offered = result.output.split(whereSeparator: \.isWhitespace).map(String.init)
        #expect(Set(offered).isSuperset(of: row.offered), "\(result.output)\(result.errors)")
        #expect(!offered.contains("verify"))
    }

    @Test(.enabled(if: has("zsh"), "zsh is not on this machine: left out"), arguments: rows + names)
    func `zsh completes what is typed`(row: (typed: String, offered: [String])) throws {
        // What is put in, or listed where more than one thing may follow, shows on the terminal of a shell of its own.
        let script = """
            zmodload zsh/zpty
            zpty shell zsh -f -i
            put() { zpty -w shell "$1" }
            put "PS1= ; PROMPT_EOL_MARK= ; stty -echo; fpath=($PWD/usr/share/zsh/site-functions \\$fpath)"
            put "autoload -Uz compinit; compinit -u -d $PWD/zcompdump"
            put 'show() { print -r -- "NOW<$BUFFER>"; BUFFER=; zle accept-line }; zle -N show; bindkey "^X^X" show'
            put 'print -r REA""DY'
            zpty -r shell seen '*READY*'
            zpty -w -n shell '\(row.typed)'$'\\t\\x18\\x18'
            zpty -r shell seen '*NOW<*>*'
            print -r -- "$seen"
            """
        let result = try shell("timeout", ["60", "zsh", "-f", "-c", script])
        #expect(result.output.contains(row.offered[0]), "\(result.output)\(result.errors)")
    }

    @Test(.enabled(if: has("fish"), "fish is not on this machine: left out"), arguments: rows)
    func `fish offers what can be typed next`(row: (typed: String, offered: [String])) throws {
        // Found by fish itself, in the folder of what vendors put in place.
        let result = try shell("fish", ["-c", "complete -C '\(row.typed)'"])
        let offered = result.output.split(separator: "\n").map { String($0.prefix { $0 != "\t" }) }
        #expect(Set(offered).isSuperset(of: row.offered), "\(result.output)\(result.errors)")
        #expect(!offered.contains("verify"))
    }

    @Test func `the manual page has every command, argument and option, as they are defined`() throws {
        let page = try Self.shared.get().read("usr/share/man/man1/fanfare.1")
        let commands = Self.leaves(try CommandDefinition.fanfare(), under: [])
        #expect(commands.count > 30)
        for (words, command) in commands {
            let start = try #require(
                page.firstRange(of: ".SS \"\(Roff.text(words.joined(separator: " ")))"), "\(words) is missing")
            let rest = page[start.upperBound...]
            let section = rest[..<(rest.firstRange(of: "\n.S")?.lowerBound ?? rest.endIndex)]
            #expect(section.contains(Roff.text(try #require(command.abstract))), "\(words)")
            for argument in command.ownArguments {
                #expect(section.contains("\n\(argument.heading)\n"), "\(words): \(argument.heading)")
                #expect(argument.abstract?.isEmpty == false, "\(words): \(argument.heading) is not explained")
            }
        }
    }

    @Test(.enabled(if: has("mandoc"), "mandoc is not on this machine: left out"))
    func `the manual page is one that man can show`() throws {
        let result = try shell("mandoc", ["-Tlint", "-Wwarning", "usr/share/man/man1/fanfare.1"])
        // It has the version's number in place of a day.
        let faults = result.output.split(separator: "\n").filter {
            $0.contains("mandoc: ") && !$0.contains("missing date")
        }
        #expect(faults.isEmpty, "\(faults)")
        let shown = try shell("mandoc", ["-Tascii", "usr/share/man/man1/fanfare.1"])
        #expect(shown.output.contains("fanfare"))
    }

    /// The commands that do something, each with its words.
    private static func leaves(
        _ command: CommandDefinition, under words: [String]
    ) -> [(words: [String], command: CommandDefinition)] {
        let words = words + [command.commandName]
        return command.shown.isEmpty ? [(words, command)] : command.shown.flatMap { leaves($0, under: words) }
    }
}
