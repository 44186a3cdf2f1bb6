import CampaignFiles
import Foundation
package import Model
import Platform
import Store

/// The name of a plan: `p2-<definition>-<template>-<variables>-<digest>-<reach>`.
///
/// The first three parts are a ``StableHash`` each. They let `run --plan` say what changed, without a stored copy of
/// the plan. They cover:
///
/// - the campaign file without its variables' defaults and the spelling of its audience
/// - the templates of all variants
/// - the values of the variables
///
/// The digest is the first ``digestDigits`` hex digits of the plan's SHA-256, see ``PlanDigest``. It identifies the
/// plan: signatures and starts must match it. The reach is the number of devices that the run would be sent to.
package struct PlanToken: Hashable, Sendable, CustomStringConvertible {
    private static let version = "p2"
    /// The previous version named a plan by the short hashes alone.
    private static let outdated = "p1"
    /// 64 bits: finding another plan with the same digits takes some 2^64 attempts.
    private static let digestDigits = 16

    package var definition: String
    package var template: String
    package var variables: String
    /// The first digits of the SHA-256 in hex.
    package var digest: String
    package var reach: Int

    /// - Parameter digest: the plan's digest in hex; see ``PlanDigest``.
    package init(_ definition: RunDefinition, reach: Int, digest: String) throws {
        self.digest = String(digest.prefix(Self.digestDigits))
        var campaign = definition.campaign
        campaign.variables = [:]
        campaign.audience.source = ""
        self.definition = try StableHash.text(of: campaign)
        template = try StableHash.text(of: Templates(main: definition.template, variants: definition.variantTemplates))
        variables = try StableHash.text(of: definition.variables)
        self.reach = reach
    }

    /// Returns `nil` if the text does not have the form of a plan's token.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 6, parts[0] == Self.version, let reach = Int(parts[5]), reach >= 0,
            parts[1...3].allSatisfy({ Self.isHex($0, 8) }), Self.isHex(parts[4], Self.digestDigits)
        else { return nil }
        definition = parts[1].lowercased()
        template = parts[2].lowercased()
        variables = parts[3].lowercased()
        digest = parts[4].lowercased()
        self.reach = reach
    }

    package var description: String { "\(Self.version)-\(definition)-\(template)-\(variables)-\(digest)-\(reach)" }

    /// Returns whether a run was created from a campaign file, template or variables other than those of this plan.
    package func differs(from run: Run) throws -> Bool {
        try PlanToken(run.definition, reach: reach, digest: digest) != self
    }

    /// Returns whether a text is a plan's name as an earlier version printed it.
    package static func isOutdated(_ text: String) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        return parts.count == 5 && parts[0] == outdated && parts[1...3].allSatisfy { isHex($0, 8) }
            && Int(parts[4]) != nil
    }

    /// Returns the reason why a text names no plan.
    package static func fault(_ text: String) -> Failure {
        if isOutdated(text) {
            return Failure(
                .invalidData,
                "\(text) is a plan hash of an earlier version, which does not cover everything that was displayed; "
                    + "display the plan again (`fanfare plan`, `fanfare approvals`) and give its current hash")
        }
        return Failure(
            .invalidData,
            "\"\(Redaction.beginning(of: text, scalars: 100))\" is not the hash of a plan; display the plan and give "
                + "the hash it shows, \(version)-…")
    }

    private static func isHex(_ text: String, _ digits: Int) -> Bool {
        text.utf8.count == digits && text.allSatisfy(\.isHexDigit)
    }

    private struct Templates: Encodable {
        var main: Template
        var variants: [String: Template]
    }
}

/// The hash of everything that a signature on a plan covers: audience, segments, texts of every language, variables,
/// stages, the prepared correction and the time of a scheduled occurrence.
struct PlanDigest {
    /// SHA-256 in hex.
    let text: String
    /// The hashed contents of the segments, which the freeze of the audience compares again.
    let segments: SegmentContents

    /// - Parameters:
    ///   - occurrence: the occurrence of the campaign's schedule; empty for a run outside the schedule.
    ///   - rules: the configured rules, with the folder of a prepared correction; `nil` leaves the correction out.
    ///   - files: known hashes of files, by path. If the correction's file is not among them, it is read.
    init(
        of definition: RunDefinition, occurrence: String, in store: any DeviceRegistry, _ rules: ApprovalRules?,
        files: [String: String] = [:]
    ) async throws {
        segments = try await store.segmentContents(of: definition.campaign)
        let path = rules?.correctionPath(definition)
        let correction = path.flatMap { path in files[path] ?? (try? FileHash.hash(of: path)) }
        var definition = definition
        definition.campaign.variables = [:]
        definition.campaign.audience.source = ""
        if occurrence.isEmpty {
            // The plan may be started at any time, so its digest covers no time.
            definition.plannedAt = Timestamp(milliseconds: 0)
            definition.wall = nil
        }
        let signed = SignedPlan(
            purpose: "fanfare plan", occurrence: occurrence, definition: definition,
            segments: segments.expressions, members: segments.members.isEmpty ? nil : segments.members,
            correction: correction)
        text = Digest.sha256Hex(Array(try StoredJSON.text(signed).utf8))
    }
}

/// The contents that a signature covers, in the form that is hashed.
private struct SignedPlan: Encodable {
    var purpose: String
    var occurrence: String
    var definition: RunDefinition
    /// The expressions of dynamic segments, by name.
    var segments: [String: String]
    /// The members of static segments, by name; `nil` if the audience names none.
    var members: [String: String]?
    /// The SHA-256 in hex of the correction's template file; `nil` if no correction is prepared.
    var correction: String?
}

extension ApprovalRules {
    /// Returns the path of a campaign's prepared correction; `nil` if it has none.
    func correctionPath(_ definition: RunDefinition) -> String? {
        guard let name = definition.campaign.correction, let folders = files else { return nil }
        return FileHash.absolute(CampaignFolder(campaigns: "", templates: folders.templates).templatePath(name))
    }
}

/// The differences from the plan that a run had to match.
package struct PlanDrift: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Part: Hashable, Sendable {
        case definition
        case template
        case variables
        /// A change that the three short hashes do not cover, or that was crafted to keep them.
        case contents
        case reach(planned: Int, now: Int)
    }

    package var campaign: String
    package var parts: [Part]

    /// Returns `nil` if nothing differs. The reach may grow and shrink by `guards.max_growth`. A campaign without
    /// `max_growth` requires the exact number.
    package init?(from planned: PlanToken, to now: PlanToken, _ campaign: Campaign) {
        self.campaign = campaign.name
        parts = []
        if planned.definition != now.definition { parts.append(.definition) }
        if planned.template != now.template { parts.append(.template) }
        if planned.variables != now.variables { parts.append(.variables) }
        if parts.isEmpty, planned.digest != now.digest { parts.append(.contents) }
        if Self.hasDrifted(planned.reach, now.reach, campaign.guards) {
            parts.append(.reach(planned: planned.reach, now: now.reach))
        }
        if parts.isEmpty { return nil }
    }

    private static func hasDrifted(_ planned: Int, _ now: Int, _ guards: Campaign.Guards) -> Bool {
        guard let limit = guards.maxGrowthPercent else { return planned != now }
        return Percent.differs(by: limit, from: planned, to: now)
    }

    /// What differs, in words.
    package var facts: String { parts.map(summary).joined(separator: "; ") }

    package var description: String {
        "campaign \(campaign) is not as planned: \(facts). "
            + "Nothing is sent; run `fanfare plan \(campaign)` again and give the new hash"
    }

    private func summary(_ part: Part) -> String {
        switch part {
        case .definition: "the campaign file has changed"
        case .template: "the template has changed"
        case .variables: "the variables have changed"
        case .contents: "a segment that the audience names, or the prepared correction, has changed"
        case .reach(let planned, let now):
            "the run would reach \(now.counted("device")), \(Percent.growth(from: planned, to: now)) than the "
                + "\(planned.grouped) planned"
        }
    }
}

/// Short hashes of values, stable across processes, machines and versions. The hash is FNV-1a with 64 bits over the
/// value's JSON with sorted keys. It is folded to 32 bits and written as 8 hex digits.
///
/// The hash shows people that something changed since they looked. An attacker who searches for a match finds one.
enum StableHash {
    static func text(of value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let hash = FNV1a.hash(String(decoding: try encoder.encode(value), as: UTF8.self))
        let digits = String(UInt32(truncatingIfNeeded: hash ^ (hash >> 32)), radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}
