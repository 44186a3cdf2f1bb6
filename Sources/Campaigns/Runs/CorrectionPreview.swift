import Foundation
package import Model
import Platform
import Store

/// A correction as a person sees it before it is sent: its values, its texts and its devices.
package struct CorrectionPreview: Sendable {
    /// The obstacle to sending the correction as it is.
    package enum Obstacle: Sendable {
        case missingValues([String])
        /// Any other obstacle, in words.
        case other(any Error)
    }

    /// The templates to choose from: the prepared one, and the run's own.
    package let templates: [String]
    package let template: String
    /// The values of the template's variables, complete or not.
    package let variables: [String: String]
    /// The correction with these values.
    package let definition: RunDefinition
    /// The devices, by environment: `PRODUCTION: 18,812 devices`.
    package let sentTo: String
    /// Whether the person may send the correction without the approvals that it needs, for a recorded reason.
    package let mayOverride: Bool
    /// The last correction of the run's texts; `nil` if this is the first one.
    package let earlier: Run?
    /// The run that has removed the notification from the screens since; `nil` if none has.
    package let removedBy: Run?
    package let obstacle: Obstacle?
    /// The correction; `nil` if there is an obstacle.
    package let prepared: CorrectRun.Prepared?
}

extension CorrectRun {
    /// Returns the correction with these values. Throws if the run cannot be corrected at all.
    ///
    /// - Parameter order: values of other variables than the template's are ignored. For values that are not given,
    ///   those of the last correction count, or else those of the run.
    package func preview(
        _ run: Run, _ order: Order, by actor: Actor, now: Timestamp, sees: (_ template: String) -> Bool = { _ in true }
    ) async throws -> CorrectionPreview {
        let own = run.definition.campaign
        let templates = [own.correction, own.template].compactMap(\.self)
        var order = order
        order.isAgain = true
        order.template = order.template.flatMap { templates.contains($0) ? $0 : nil } ?? templates.first
        let draft = try await draft(run, order, sees)
        let corrections = try await Self.corrections(of: run, in: store)
        let earlier = corrections.filter { $0.definition.correction?.kind == .replace }
        let last = earlier.last { $0.definition.template.name == draft.template.name }
        let sent = run.definition.variables.merging(last?.definition.variables ?? [:]) { $1 }
        let names = draft.template.variables
        order.variables = sent.merging(order.variables) { $1 }.filter { names.contains($0.key) }
        var definition = RunDefinition(
            campaign: draft.campaign, template: draft.template, variables: order.variables, plannedAt: now,
            correction: Correction(of: run.id, .replace))
        let unset = draft.template.unset(in: order.variables)
        let signatures = try await signatures(for: order, run, draft, by: actor)
        var obstacle: CorrectionPreview.Obstacle?
        var prepared: Prepared?
        var mayOverride = false
        if !unset.isEmpty {
            obstacle = .missingValues(unset)
        } else {
            do {
                var found = try await prepare(draft, run, order, signatures, by: actor, now: now)
                if case .missing(true, _) = signatures {
                    if case .approved = found.step {} else { mayOverride = true }
                    found.reason = mayOverride ? try RecordedReason.checked(order.reason) : nil
                }
                definition = found.definition
                prepared = found
            } catch {
                obstacle = .other(error)
            }
        }
        for name in names where order.variables[name] == nil { order.variables[name] = "" }
        return CorrectionPreview(
            templates: templates, template: draft.template.name, variables: order.variables, definition: definition,
            sentTo: draft.reached.environmentSummary, mayOverride: mayOverride, earlier: earlier.last,
            removedBy: Self.removal(by: corrections),
            obstacle: obstacle, prepared: prepared)
    }
}

extension CorrectRun.Prepared {
    /// The SHA-256 in hex of everything that the correction sends: the corrected run, the template and the values. A
    /// page sends it back with its form, so that only the previewed correction starts.
    package var digest: String {
        get throws {
            var definition = definition
            definition.plannedAt = Timestamp(milliseconds: 0)
            let text = try StoredJSON.text(Previewed(purpose: "fanfare correct", definition: definition))
            return Digest.sha256Hex(Array(text.utf8))
        }
    }
}

/// The hashed contents of a preview.
private struct Previewed: Encodable {
    var purpose: String
    var definition: RunDefinition
}
