import Campaigns
import Foundation
import Model
import SendingScene
import TestSupport
import Testing

@testable import Web

/// Files of a campaign, and the devices it is for.
extension WebScene {
    static let campaignText = """
        campaign: new-podcast
        topic: com.example.app
        push_type: alert
        template: new-podcast
        audience: locale in ("en", "de")
        variables: {show: WenderCast, title: ""}
        expires_after: 4h

        """

    static let templateText = """
        template: new-podcast
        default_locale: en
        alert:
          en: {title: "New on {{show}}", body: "{{title}} is out."}
          de: {title: "Neu bei {{show}}", body: "{{title}} ist da."}

        """

    static let scheduledText = """
        campaign: morning
        topic: com.example.app
        push_type: alert
        template: new-podcast
        variables: {show: WenderCast, title: Morning}
        schedule: {cron: "30 2 * * *", zone: Europe/Berlin}
        expires_after: 4h
        audience: everyone

        """

    /// Files are written by way of the web, and there is an app beside the scene's own.
    static func editingOfTwoApps(_ configuration: inout Configuration) {
        configuration.http.editing = true
        var other = configuration.apps[0]
        other.topic = "com.example.other"
        configuration.apps.append(other)
    }

    /// A campaign with its template, and four devices of which two speak German.
    func addCampaign() async throws {
        try folder.write(Self.templateText, to: "templates/new-podcast.yaml")
        try folder.write(Self.campaignText, to: "campaigns/new-podcast.yaml")
        try await sending.addDevices(0..<4)
    }

    /// Plans a campaign, and returns the plan's page.
    func planned(
        _ form: [String: String], as role: AccessRole = .sender, of page: String = "/campaigns/new-podcast"
    ) async throws -> (address: String, text: String) {
        let answer = try await self.page("\(page)/plan", as: role, form: form)
        let address = try #require(answer.header("location"), "\(answer.status)")
        return (address, try await self.page(address, as: role).text)
    }

    /// The value of a hidden or typed field.
    static func field(_ name: String, in text: String) -> String? {
        let pattern = try? Regex("name=\"\(NSRegularExpression.escapedPattern(for: name))\"[^>]* value=\"([^\"]*)\"")
        return pattern.flatMap { text.firstMatch(of: $0) }?.output[1].substring.map(String.init)
    }

    /// A token with a role that is good for one app alone.
    func confined(to topic: String, as role: AccessRole = .admin) async throws -> [String: String] {
        let (_, secret) = try await webConsole.cases.access.create(
            name: topic, role: role, topic: topic, expiresIn: nil, by: "test", now: sending.clock.now)
        return ["Authorization": "Bearer \(secret)"]
    }

    /// The same for somebody who looks at pages.
    func confinedVisitor(to topic: String, as role: AccessRole = .admin) async throws -> [String: String] {
        let access = webConsole.cases.access
        let made = try await access.create(
            name: "visitor-of-\(topic)-\(role.rawValue)", role: role, topic: topic, expiresIn: nil, by: "test",
            now: sending.clock.now)
        let secret = try await access.signIn(made.token, by: "test", now: sending.clock.now)
        return ["Cookie": "fanfare=\(secret)"]
    }

    /// The text of a file in its folder, nil when there is none.
    func text(of file: String) -> String? { try? folder.read(file) }
}
