import Campaigns
import Hummingbird
import Model

/// The search for devices, and the history of one device.
struct DevicePages: Sendable {
    /// The search form, the devices found, and the counts of all devices.
    struct Search: Sendable {
        struct Count: Sendable {
            var topic: String
            var environment: String
            var active: String
            var suspended: String
            var gone: String
        }

        /// The search text as typed.
        var find: String
        var problem: String?
        var found: [Line]
        var hasFound: Bool
        var tableAddress: String
        var counts: [Count]
        var hasCounts: Bool
        /// Whether a first count of the devices is in progress.
        var isCounting: Bool
        /// The time of the count.
        var countedAt: PageHTML?
    }

    struct Line: Sendable {
        var address: String
        var name: String
        var user: String
        var topic: String
        var environment: String
        var token: String
        var status: String
        /// The CSS class of the colour.
        var colour: String
        var lastSeenAt: PageHTML?

        init(_ device: DeviceResult) {
            address = "/devices/\(device.device)"
            name = device.installationId ?? "device \(device.device)"
            user = device.userId ?? ""
            topic = device.topic
            environment = device.environment
            token = device.token
            status = device.status
            colour = StateColour.of(device.status)
            lastSeenAt = device.lastSeenAt.map(PageHTML.init(time:))
        }
    }

    let cases: UseCases

    var routes: [PageRoute] { [.get("/devices", .read, search), .get("/devices/{device}", .read, show)] }

    @Sendable private func search(_ request: PageRequest) async throws -> Response {
        let caller = try request.caller
        let text = request.query("find")
        var found: [DeviceResult] = []
        var problem: String?
        if let text {
            do {
                found = try await cases.devices.found(text, sees: caller.sees)
            } catch {
                let refusal = Problem(error)
                guard refusal.status == 404 else { throw error }
                problem = refusal.detail
            }
        }
        if request.query("format") == "csv" { return .table(try ListTable.text(found)) }
        if found.count == 1 { return PageRequest.seeOther("/devices/\(found[0].device)") }
        return try request.page(
            .devices, title: "Devices", try await page(text ?? "", found, problem, caller),
            status: problem == nil ? .ok : .notFound)
    }

    private func page(
        _ text: String, _ found: [DeviceResult], _ problem: String?, _ caller: Caller
    ) async throws -> Search {
        let counted = try await cases.deviceCounts.latest()
        let counts = (counted?.counts ?? []).filter { caller.sees($0.topic) }
        return Search(
            find: text, problem: problem, found: found.map(Line.init), hasFound: !found.isEmpty,
            tableAddress: "/devices?format=csv&find=\(text.inAddress)", counts: Search.Count.table(counts),
            hasCounts: !counts.isEmpty, isCounting: counted == nil,
            countedAt: counted.map { PageHTML(time: $0.countedAt) })
    }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        let number = try request.number("device", of: "device")
        let explanation = try await cases.explaining.explain(number, now: cases.now).result
        try request.caller.requireTopic(explanation.device.topic, orNotFound: "no device \(number)")
        if request.query("format") == "csv" { return .table(try ListTable.text(explanation.events)) }
        let page = DevicePage(explanation)
        return try request.page(.device, title: page.name, page)
    }
}

extension DevicePages.Search.Count {
    /// Returns a row for each app and environment.
    fileprivate static func table(_ counts: [DeviceCountResult]) -> [Self] {
        let places = counts.map { [$0.topic, $0.environment] }
        return places.enumerated().filter { places.firstIndex(of: $1) == $0 }.map { _, place in
            let count = { (status: DeviceStatus) in
                counts.filter { [$0.topic, $0.environment] == place && $0.status == status.rawValue }
                    .reduce(0) { $0 + $1.count }.grouped
            }
            return Self(
                topic: place[0], environment: place[1], active: count(.active), suspended: count(.suspended),
                gone: count(.gone))
        }
    }
}

/// One device: its data, what a push would do now, and its history.
struct DevicePage: Sendable {
    struct Fact: Sendable {
        var label: String
        var value: String
    }

    struct Event: Sendable {
        var at: PageHTML
        /// `registration`, `delivery` or `status`.
        var kind: String
        /// The address of the event's run. `nil` if the event belongs to no run.
        var address: String?
        var campaign: String?
        var text: PageHTML
    }

    var name: String
    var status: String
    var colour: String
    var facts: [Fact]
    var now: [PageHTML]
    /// The events, latest first.
    var events: [Event]
    var hasEvents: Bool
    /// Whether older events are left out.
    var isCut: Bool
    var tableAddress: String

    init(_ explanation: ExplanationResult) {
        let device = explanation.device
        name = device.installationId ?? "device \(device.device)"
        status =
            device.status + (device.statusReason.map { ": \($0)" } ?? "")
            + (device.statusAt.map { ", since \($0.shownTime)" } ?? "")
        colour = StateColour.of(device.status)
        facts = Self.facts(device)
        now = explanation.now.map(PageHTML.init(message:))
        events = explanation.events.reversed().map { event in
            // The link in front of the text already names the campaign.
            let name = event.run == nil ? "" : event.campaign.map { "\($0): " } ?? ""
            let text = event.text.hasPrefix(name) ? String(event.text.dropFirst(name.count)) : event.text
            return Event(
                at: PageHTML(time: event.at), kind: event.kind, address: event.run.map { "/runs/\($0)" },
                campaign: event.campaign, text: PageHTML(message: text))
        }
        hasEvents = !events.isEmpty
        isCut = explanation.isCut
        tableAddress = "/devices/\(device.device)?format=csv"
    }

    private static func facts(_ device: DeviceResult) -> [Fact] {
        let facts: [(String, String?)] = [
            ("App", device.topic), ("Environment", device.environment), ("Token", device.token),
            ("User", device.userId),
            ("Language", device.locale), ("Time zone", device.timeZone), ("Country", device.country),
            ("App version", device.appVersion), ("System", device.osVersion), ("Model", device.model),
            ("Alerts", device.alertsAllowed.map { $0 ? "allowed" : "not allowed" }),
            ("Registered", device.registeredAt?.shownTime), ("Last seen", device.lastSeenAt?.shownTime),
            ("Badge", "\(device.badge)"), ("Tags", device.tags.isEmpty ? nil : device.tags.joined(separator: ", ")),
            ("Number", "\(device.device)"),
        ]
        return facts.compactMap { label, value in value.map { Fact(label: label, value: $0) } }
    }
}

/// The colours of states other than delivery states. Each has the colour of a delivery state with a similar meaning.
enum StateColour {
    static func of(_ word: String) -> String {
        switch word {
        case "active", "ok", "good", "alive": "accepted"
        case "suspended", "warning", "silent": "retried"
        case "wrong": "rejected"
        default: "suppressed"
        }
    }
}
