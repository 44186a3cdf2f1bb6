import Model

/// The words that stand on a page where a message names a command of the terminal. Messages of the domain serve all
/// front ends; a page offers a button or another page for the same step.
enum CommandReplacement {
    /// Returns the text without commands.
    static func replaced(in text: String) -> String {
        let signs = ["fanfare", "timedatectl", "kill -", "--override-guard", "--occurrence", "--again"]
        guard signs.contains(where: text.holds) else { return text }
        let text = text.replacing(
            /; --override-guard \w+ sends anyway; the override is recorded/, with: "; or tick its box to send anyway")
        return text.replacing(/(?:run: )?`?systemctl ([a-z-]+) fanfare`?/) { "ask the operator to \($0.1) the service" }
            .replacingWord("run: timedatectl set-ntp true", with: "ask the operator to turn on NTP")
            .replacingWord(" (timedatectl)", with: "")
            .replacingWord(", perhaps from an empty script variable; give", with: "; give")
            .replacingWord(", or omit --occurrence", with: "")
            .replacingWord("; --again sends another one", with: "; reload the page")
            .replacingWord(
                "run: kill -CONT its process, or restart it", with: "ask the operator to restart the service"
            )
            .replacing(/(?:run )?`fanfare ((?>[^`]*))`/) {
                replacement(for: $0.1.split(separator: " ").map(String.init))
            }
    }

    /// Returns the words for a command without the name of the program.
    private static func replacement(for command: [String]) -> String {
        let verb = command.first ?? ""
        let run = command.dropFirst().first.flatMap { Int64($0) }.map { "the page of run \($0)" }
        switch verb {
        case "approve" where command.contains("--variant"):
            return "“Send … to the rest”, an approver’s button on \(run ?? "the page of the run"),"
        case "status": return run ?? "the Broadcasts page"
        case "report": return run ?? "the page of the run"
        case "approve" where run == nil, "approvals": return "the Approvals page"
        case "approve": return "“Approve the next stage”, an approver’s button on \(run ?? "the page of the run"),"
        case "plan": return "a new plan"
        case "run": return command.contains("--due") ? "the next scheduled call" : "a plan on the campaign’s page"
        case "test-send": return "a test send"
        case "validate": return "the Campaigns page"
        case "schedule": return "the Calendar page"
        case "tokens": return "the People page"
        case "changes": return "the page of waiting changes"
        case "stop": return "the Stop page"
        case "audit": return "the Audit page"
        case "devices": return "an import by the operator"
        case "doctor": return "the Health page"
        case "serve": return "the service"
        default: break
        }
        guard let label = buttons[verb] else { return "the operator’s command line" }
        return "“\(label)” on \(run ?? "the page of the run")"
    }

    /// The labels of the buttons of a run's page.
    private static let buttons = [
        "resume": "Resume", "pause": "Pause", "cancel": "Cancel permanently",
        "recall": "Remove it from the screens", "correct": "Correct the text",
    ]
}
