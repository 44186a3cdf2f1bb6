import CampaignFiles
import Campaigns
import Foundation
import Model

/// The values of an audience to choose from, and those that are chosen: the part of a form that the composer and the
/// form of a segment share.
struct AudienceChoices: Sendable {
    typealias Choice = ComposerForm.Choice

    var segments: [Choice]
    var locales: [Choice]
    var tags: [Choice]
    var attributes: [Choice]
    var countries: String
    var version: String
    var versions: [String]
    var seen: String

    /// - Parameters:
    ///   - values: the values of the devices.
    ///   - names: the names of the segments.
    ///   - fields: what is chosen.
    init(_ values: AudienceValuesResult, segments names: [String], _ fields: ComposerFields) {
        segments = Self.choices("segment", names.map { ($0, nil) }, fields)
        tags = Self.choices("tag", values.tags.map { ($0.name, $0.devices.grouped) }, fields)
        locales = Self.choices("locale", values.locales.map { ($0.name, $0.devices.grouped) }, fields).map { choice in
            var choice = choice
            choice.label = "\(ComposerForm.name(of: choice.label)) (\(choice.label))"
            return choice
        }
        attributes = Self.choices("attribute", [], fields)
        versions = values.appVersions.map(\.name).sorted { $0.compare($1, options: .numeric) == .orderedDescending }
        (countries, version, seen) = (fields["who.countries"], fields["who.version"], fields["who.seen"])
    }

    private static func choices(
        _ kind: String, _ values: [(name: String, devices: String?)], _ fields: ComposerFields
    ) -> [Choice] {
        let known = Set(values.map(\.name))
        let others = fields.names(behind: "who.\(kind).").filter { !known.contains($0) }
        return (values + others.map { ($0, nil) }).map { name, devices in
            let field = "who.\(kind).\(name)"
            let state = fields[field]
            return Choice(
                field: field, label: name, devices: kind == "attribute" ? state : devices, isOn: state == "on",
                isIn: state == "in", isOut: state == "out")
        }
    }
}
