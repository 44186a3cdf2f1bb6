import Foundation
package import Model
package import Store

/// A run that already sends, or has just sent, the content that a person is about to send.
package struct EarlierSend: Hashable, Sendable {
    /// How long after its start a run counts as a probable mistake when the same content is sent again. It is shorter
    /// than a day, so that a daily send is not asked about, even when the clocks change.
    package static let window: Duration = .seconds(20 * 3600)

    /// The runs that are compared, the newest first.
    private static let runsMax = 100

    package var run: Run

    /// Returns the newest run of the campaign with the same campaign file, templates and values, if it is unfinished or
    /// was started within ``window``. Returns `nil` for a push that shows nothing, because devices do not notice a
    /// repetition. A run that ended before it sent anything does not count.
    package static func find(_ definition: RunDefinition, in store: any RunLog, now: Timestamp) async throws -> Self? {
        guard definition.campaign.pushType == .alert else { return nil }
        let content = try ContentHash(definition)
        var recent = RunFilter()
        recent.campaign = definition.campaign.name
        recent.createdFrom = now - window
        var unfinished = recent
        unfinished.createdFrom = nil
        unfinished.states = Set(RunState.unfinished)
        for filter in [recent, unfinished] {
            let runs = try await store.runs(filter, before: nil, limit: runsMax)
            for run in runs where !run.state.isFinal || run.counts.hasSent {
                if try ContentHash(run.definition) == content { return Self(run: run) }
            }
        }
        return nil
    }

    /// Returns what was sent when, such as `run 9 (the-quiet-reef-1a2b3c4d) already sent the same content 3 min ago`.
    package func facts(now: Timestamp) -> String {
        let ago = "\(WrittenDuration.text(max(.seconds(1), now - run.createdAt))) ago"
        let name = "run \(run.id) (\(run.occurrence))"
        guard !run.state.isFinal else { return "\(name) already sent the same content, started \(ago)" }
        return "\(name) with the same content is \(run.state.rawValue), started \(ago)"
    }
}

/// The name of a send that got none from a person.
package enum DefaultOccurrence {
    private static let lettersMax = 40

    /// Returns a name from the first words and the hash of the content, such as `the-quiet-reef-1a2b3c4d`. The same
    /// content has the same name, so a repeated start finds the run that there is. If an earlier run has the name, and
    /// for a push that shows nothing, the time makes it a new name.
    package static func name(
        of definition: RunDefinition, in store: any RunLog, now: Timestamp
    ) async throws -> String {
        guard definition.campaign.pushType == .alert else { return "run-\(now.iso8601)" }
        let name = [slug(definition), try ContentHash(definition).description].filter { !$0.isEmpty }
            .joined(separator: "-")
        let known = try await store.run(campaign: definition.campaign.name, occurrence: name)
        return known == nil ? name : "\(name)-\(now.iso8601)"
    }

    /// Returns the words that tell this send from others, in lowercase ASCII letters and digits: the first value in the
    /// text that is not the campaign's default, or else the text itself.
    private static func slug(_ definition: RunDefinition) -> String {
        let shown = definition.excerpt(in: []) ?? ""
        let given = definition.variables.filter { $0.value != definition.campaign.variables[$0.key] }.values
        let first = given.compactMap { value in shown.range(of: value).map { (value, $0.lowerBound) } }
            .min { $0.1 < $1.1 }
        let text = first?.0 ?? shown
        return text.asName(lettersMax: lettersMax)
    }
}

extension String {
    /// The text as a name of lowercase ASCII letters, digits and hyphens, such as `winter-special` for
    /// `Winter Special!`. Words that make the name too long are left out. Empty if no letter is left.
    package func asName(lettersMax: Int) -> String {
        let plain = prefix(200).folding(options: [.diacriticInsensitive, .caseInsensitive], locale: nil)
        var name = ""
        for word in plain.split(whereSeparator: { !($0.isASCII && ($0.isLetter || $0.isNumber)) })
        where name.count + word.count < lettersMax {
            name += (name.isEmpty ? "" : "-") + word
        }
        return name
    }
}

/// The identity of what a run sends: its campaign file, templates and values.
package struct ContentHash: Hashable, Sendable, CustomStringConvertible {
    private let parts: [String]

    package init(_ definition: RunDefinition) throws {
        let token = try PlanToken(definition, reach: 0, digest: "")
        parts = [token.definition, token.template, token.variables]
    }

    /// 8 hex digits.
    package var description: String { (try? StableHash.text(of: parts)) ?? "" }
}
