import APNs
import CampaignFiles
import Campaigns
import Foundation
import Guide
import Model
import Sending
import Store
import Web

extension Guide {
    /// The written pages and the reference.
    static let complete = Guide(reference: ReferencePages.all)
}

/// The reference of the guide: every key, command, state, reason, metric and exit code. Each page is built from what
/// the program itself uses, so that it cannot be out of date.
enum ReferencePages {
    static var all: [GuidePage] {
        let pages = [
            FileReference.campaign, FileReference.template, FileReference.configuration, FileReference.devices,
            CommandReference.page, states, responses, DataDictionary.page, roles, MetricReference.page, exitCodes,
        ]
        let entries = pages.map { "- [\($0.title)](\($0.fileName))" }
        let entry = "# Reference\n\nEvery key, command, state, reason, metric and exit code.\n\n"
        return [GuidePage(name: "Reference.md", text: entry + entries.joined(separator: "\n"))] + pages
    }

    private static var states: GuidePage {
        let text = """
            # States and reasons

            The words in reports, on pages and in `--json` output, and what each means.

            ## States of a run

            \(table("state", RunState.allCases.map { ($0.rawValue, $0.explanation) }))

            ## Why a run is paused

            A run can also pause automatically. The first two pauses end automatically.

            \(table("reason", RunHalt.allCases.map { ($0.rawValue, $0.explanation) }))

            ## States of a delivery

            The counts of a report add up to the audience. A pending delivery that a sender has claimed is shown as
            `leased`.

            \(table("state", DeliveryState.allCases.map { ($0.name, $0.explanation) }))

            ## Why a delivery is suppressed

            \(table("reason", SuppressionReason.allCases.map { ($0.rawValue, $0.explanation) }))

            ## Verdicts on a stage

            \(table("verdict", StageVerdict.allCases.map { ($0.rawValue, $0.explanation) }))
            """
        return GuidePage(name: "ReferenceStates.md", text: text)
    }

    private static var responses: GuidePage {
        let rows = PushReason.known.map { known in
            let result = PushResult.answered(PushResponse(status: known.status, reason: known.reason))
            return "| `\(known.name)` | \(known.status) | \(OutcomePolicy.row(for: result).explanation) |"
        }
        let text = """
            # Responses of APNs

            The reasons that APNs gives for a rejection, and what Fanfare does. A status of 200 is `accepted`.

            | reason | status | consequence |
            |---|---|---|
            \(rows.joined(separator: "\n"))
            """
        return GuidePage(name: "ReferenceResponses.md", text: text)
    }

    private static var roles: GuidePage {
        let text = """
            # Roles and audit entries

            The roles of access tokens, what each may do, and the kinds of entries in the audit log.

            ## Roles

            \(table("role", AccessRole.allCases.map { role in
                let permissions = AccessRole.Permission.allCases.filter(role.may).map { "`\($0.rawValue)`" }
                return (role.rawValue, "\(role.about). Permissions: \(permissions.joined(separator: ", "))")
            }))

            ## Audit entries

            `fanfare audit --kind KIND` lists the entries of a kind.

            \(EventKind.allCases.map { "- `\($0.rawValue)`" }.joined(separator: "\n"))
            """
        return GuidePage(name: "ReferenceRoles.md", text: text)
    }

    private static var exitCodes: GuidePage {
        let text = """
            # Exit codes

            Every command of `fanfare` exits with one of these codes. `fanfare guide runbook` says what to do.

            | code | meaning |
            |---|---|
            \(Fanfare.exitCodes.map { "| \($0.code) | \($0.meaning) |" }.joined(separator: "\n"))
            """
        return GuidePage(name: "ReferenceExitCodes.md", text: text)
    }

    static func table(_ head: String, _ rows: [(word: String, explanation: String)]) -> String {
        (["| \(head) | meaning |", "|---|---|"] + rows.map { "| `\($0.word)` | \($0.explanation) |" })
            .joined(separator: "\n")
    }
}

extension GuidePage {
    /// The name of the page as the target of a link.
    fileprivate var fileName: String { name.split(separator: "-").map { $0.capitalized }.joined() + ".md" }
}

extension OutcomePolicy.Row {
    /// The consequence of such a response, in sentences.
    fileprivate var explanation: String {
        let effect: String? =
            switch consequence {
            case .none: nil
            case .tokenGone: "The device is marked as gone, unless it has registered again since."
            case .environmentMismatch: "The device is suspended if the run as a whole proves healthy."
            case .requestFault: "The run pauses after the first few such responses."
            case .credentialFault: "Sending to this environment stops, and the run pauses."
            case .refusedProviderToken: "The push is sent again with a new provider token."
            }
        return [outcome, effect].compactMap(\.self).joined(separator: " ")
    }

    private var outcome: String {
        switch decision {
        case .accepted: "The delivery is `accepted`."
        case .rejected: "The delivery is `rejected`."
        case .unknown: "The delivery is `unknown`."
        case .retry(.none): "The delivery stays `pending` and is sent again."
        case .retry(.device): "The delivery is retried after a growing wait for this device."
        case .retry(.service): "The delivery is retried after a growing wait for the service."
        case .retry(.credential): "The delivery is retried after a growing wait for the signing key."
        }
    }
}
