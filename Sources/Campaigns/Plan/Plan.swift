package import Model
import Rendering

/// The expected course of a run, as far as it is known now.
package struct Plan: Hashable, Sendable {
    /// One text that a template can render, with the devices that get it, and its size.
    package struct Block: Hashable, Sendable {
        /// `nil` in a campaign without variants.
        package var variant: String?
        /// The locale's tag; `all` if nothing is localized.
        package var locale: String
        package var devices: Int
        /// The languages of these devices, the most frequent first.
        package var languages: [Language]
        /// The smallest payload that this text can produce, with empty device fields.
        package var payloadMinBytes: Int
        /// The largest payload that this text can produce, with long device fields.
        package var payloadMaxBytes: Int
        package var sample: String
    }

    /// The devices of one language, and whether they get a text in it.
    package struct Language: Hashable, Sendable {
        /// The language as stored with the devices; `nil` if it is not known.
        package var tag: String?
        package var devices: Int
        /// `false` if no text fits the language, so that these devices get the default text.
        package var isCovered: Bool
    }

    package struct VariantShare: Hashable, Sendable {
        package var name: String
        package var template: String
        package var devices: Int
    }

    package struct Header: Hashable, Sendable {
        package var name: String
        package var value: String
        /// What the value means, in a few words; may be empty.
        package var meaning: String
    }

    package var definition: RunDefinition
    package var madeAt: Timestamp
    package var reach: Reach
    package var variants: [VariantShare]
    package var blocks: [Block]
    package var payloadLimitBytes: Int
    package var headers: [Header]
    package var waves: [Wave]
    /// Empty in a campaign without stages.
    package var stages: [PlannedStage]
    /// For background pushes.
    package var silentBudget: SilentForecast?
    /// For a campaign whose class is named by a frequency cap.
    package var capped: CappedForecast?
    /// For a campaign with quiet hours.
    package var quiet: QuietForecast?
    /// The changes since the campaign's last finished run; `nil` if there is none.
    package var difference: RunDifference?
    /// The token that identifies this plan, for `fanfare run --plan`.
    package var token: PlanToken
    /// The SHA-256 in hex that signatures on the plan cover, see ``PlanDigest``.
    package var digest: String
    /// The reasons why `run` would refuse.
    package var refusals: [GuardRefusal]
    /// The environments that the app has no key for, with their devices.
    package var keyless: [KeylessDevices] = []
    /// The app's other topics with devices that the audience would select, if it selects none under its own topic.
    package var otherTopics: TopicMismatch?
    /// The reason why no device gets anything; `nil` if some do.
    package var emptyReach: EmptyReach?
    /// The reason why the volume brake would pause the run for a person; `nil` if it would not.
    package var brake: String?
    /// The signatures that the run needs, or the reason why no signature suffices; `nil` if it needs none.
    package var approval: String?
    /// The empty segments that the audience excludes. An emptied opt-out list excludes no device.
    package var emptyExclusions: [String] = []
    /// The values of variables that are probably mistakes, see ``Model/RunDefinition/lintOfValues()``.
    package var lint: [String] = []
    /// The run that has just sent the same content; `nil` if there is none, or if the schedule sends it.
    package var earlier: EarlierSend?

    package var byEnvironment: [(environment: PushEnvironment, count: Int)] {
        PushEnvironment.allCases.map { environment in
            (environment, reach.slices.filter { $0.environment == environment }.reduce(0) { $0 + $1.count })
        }
    }

    /// The devices whose payload would be over the limit even with empty device fields. Nothing is sent to them.
    package var tooLarge: Int {
        blocks.filter { $0.payloadMinBytes > payloadLimitBytes }.reduce(0) { $0 + $1.devices }
    }

    /// All devices that the audience selects, including those that are left out.
    package var selected: Int { reach.total + reach.suppressed.values.reduce(0, +) }

    /// The devices in a language that no text fits, with the text that they get instead.
    package var uncovered: [(language: String, devices: Int, text: String)] {
        var found: [String: (devices: Int, text: String)] = [:]
        for block in blocks {
            for language in block.languages where !language.isCovered {
                guard let tag = language.tag else { continue }
                found[tag, default: (0, block.locale)].devices += language.devices
            }
        }
        return found.map { ($0.key, $0.value.devices, $0.value.text) }
            .sorted { ($1.devices, $0.language) < ($0.devices, $1.language) }
    }
}

extension Plan.Header {
    /// Returns the headers of every push of the run, except its token and id, in the order of Apple's documentation.
    package static func all(_ definition: RunDefinition) -> [Plan.Header] {
        let campaign = definition.campaign
        let run = Run(
            id: 0, campaign: campaign.name, occurrence: "", definition: definition, state: .scheduled,
            createdAt: definition.plannedAt)
        let headers = RunHeaders(run)
        var list = [
            Plan.Header(name: "apns-topic", value: headers.topic, meaning: ""),
            Plan.Header(name: "apns-push-type", value: headers.pushType, meaning: ""),
            Plan.Header(name: "apns-priority", value: "\(headers.priority)", meaning: ""),
        ]
        if let expiration = headers.expiration {
            list.append(
                Plan.Header(
                    name: "apns-expiration", value: "\(expiration)",
                    meaning: campaign.expiresAfter.map {
                        $0 == .zero ? "one attempt" : "\(WrittenDuration.text($0)) after the start"
                    } ?? ""))
        }
        if let collapseID = headers.collapseID {
            let isPerRun = campaign.collapse == .run
            list.append(
                Plan.Header(
                    name: "apns-collapse-id",
                    value: isPerRun ? "\(collapseID.dropLast(2))-<run>" : collapseID,
                    meaning: isPerRun ? "one per run" : ""))
        }
        return list
    }
}

/// Devices of an environment that the app has no key for. Nothing can be sent to them.
package struct KeylessDevices: Hashable, Sendable, CustomStringConvertible {
    package var environment: PushEnvironment
    package var devices: Int

    /// - Parameter keyed: the environments that the app has a key for.
    static func all(in reach: Reach, keyed: Set<PushEnvironment>) -> [KeylessDevices] {
        PushEnvironment.allCases.filter { !keyed.contains($0) }.map { environment in
            let devices = reach.slices.filter { $0.environment == environment }.reduce(0) { $0 + $1.count }
            return KeylessDevices(environment: environment, devices: devices)
        }.filter { $0.devices > 0 }
    }

    package var description: String {
        "\(devices.counted("\(environment.rawValue) device")): the app has no key for \(environment.rawValue) "
            + "(keys.\(environment.rawValue) in the configuration); nothing is sent to them, and the run pauses for "
            + "these devices when the others are done"
    }
}
