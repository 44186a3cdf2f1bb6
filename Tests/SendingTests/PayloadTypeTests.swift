import Model
import Rendering
import Sending
import Testing

/// The body of every push type (`ProviderProtocol` sections 4 and 5).
struct PayloadTypeTests {
    private func text(_ source: String) throws -> TemplateText { try TemplateText(parsing: source) }

    private func body(
        _ template: Template, _ pushType: PushType, fields: [String?] = [], sentAt: Timestamp? = nil
    ) throws -> String {
        let renderer = try PayloadRenderer(
            template: template, pushType: pushType, variables: ["show": "S"],
            plannedAt: Timestamp(milliseconds: 1_700_000_000_999))
        let payload = renderer.prototypes[0].payload(fields: fields, badge: 0, sentAt: sentAt)
        return String(decoding: payload, as: UTF8.self)
    }

    @Test(arguments: [
        (PushType.background, #"{"aps":{"content-available":1},"k":"S"}"#),
        (.location, #"{"aps":{"content-available":1},"k":"S"}"#),
        (.voip, #"{"aps":{},"k":"S"}"#), (.complication, #"{"aps":{},"k":"S"}"#), (.pushtotalk, #"{"aps":{},"k":"S"}"#),
        (.fileprovider, #"{"k":"S"}"#),
    ])
    func `a type that shows nothing carries the app's keys`(type: PushType, json: String) throws {
        var template = Template(name: "t")
        template.custom = [.init("k", .text(try text("{{show}}")))]
        #expect(try body(template, type) == json)
    }

    @Test(arguments: [PushType.widgets, .controls])
    func `widgets and controls only hear that something has changed`(type: PushType) throws {
        #expect(try body(Template(name: "t"), type) == #"{"aps":{"content-changed":true}}"#)
    }

    @Test func `a device-management push is the push magic of the device`() throws {
        var template = Template(name: "t")
        template.pushMagic = try text("{{device.attributes.push_magic}}")
        #expect(try body(template, .mdm, fields: ["A-\"1\""]) == #"{"mdm":"A-\"1\""}"#)
    }

    @Test func `only a call may have 5120 bytes`() {
        for type in PushType.allCases { #expect(type.payloadMaxBytes == (type == .voip ? 5120 : 4096)) }
    }

    @Test func `an alert may wake the app and name a launch image`() throws {
        var template = Template(name: "t")
        template.alert = .byApp(.init(locKey: "NEW"))
        template.launchImage = try text("start.png")
        template.contentAvailable = true
        #expect(
            try body(template, .alert)
                == #"{"aps":{"alert":{"loc-key":"NEW","launch-image":"start.png"},"content-available":1}}"#)
    }

    private func activity() throws -> LiveActivity {
        var activity = LiveActivity(event: .start)
        activity.contentState = [.init("score", .array([.integer(1), .text(try text("{{show}}"))]))]
        activity.attributesType = "MatchAttributes"
        activity.attributes = [.init("team", .text(try text("{{device.model}}")))]
        activity.inputPushToken = true
        activity.inputPushChannel = try text("Y2g=")
        activity.staleDate = .afterSending(.seconds(7200))
        activity.dismissalDate = .at(Timestamp(milliseconds: 1_800_000_000_500))
        return activity
    }

    @Test func `every key of a Live Activity stands where Apple wants it`() throws {
        var template = Template(name: "t")
        template.liveActivity = try activity()
        template.relevanceScore = 75
        template.sound = .named(try text("goal.caf"))
        template.alert = .localized([
            .init(
                locale: try #require(LocaleTag("en")), title: try text("On {{show}}"), subtitle: nil,
                body: try text("Go"))
        ])
        let json = try body(
            template, .liveactivity, fields: ["iPhone"], sentAt: Timestamp(milliseconds: 1_790_000_000_001))
        #expect(
            json == #"{"aps":{"timestamp":1790000000,"event":"start","content-state":{"score":[1,"S"]},"#
                + #""attributes-type":"MatchAttributes","attributes":{"team":"iPhone"},"input-push-token":1,"#
                + #""input-push-channel":"Y2g=","alert":{"title":"On S","body":"Go","sound":"goal.caf"},"#
                + #""stale-date":1790007200,"dismissal-date":1800000000,"relevance-score":75.0}}"#)
    }

    @Test func `a Live Activity's texts may be left to the app`() throws {
        var template = Template(name: "t")
        template.liveActivity = LiveActivity(event: .update)
        template.alert = .byApp(
            .init(locKey: "BODY", locArgs: [try text("{{show}}")], titleLocKey: "TITLE"))
        #expect(
            try body(template, .liveactivity, sentAt: Timestamp(milliseconds: 5_000))
                == #"{"aps":{"timestamp":5,"event":"update","alert":{"title":{"loc-key":"TITLE"},"#
                + #""body":{"loc-key":"BODY","loc-args":["S"]}}}}"#)
    }

    @Test func `without a moment of sending the planned time stands in`() throws {
        var template = Template(name: "t")
        template.liveActivity = LiveActivity(event: .end)
        #expect(try body(template, .liveactivity) == #"{"aps":{"timestamp":1700000000,"event":"end"}}"#)
    }

    private func definition(_ variants: [(name: String, template: Template)]) throws -> RunDefinition {
        var campaign = Campaign(name: "c", topic: "com.example.a", pushType: .background, template: "t")
        campaign.variants = variants.map { .init(name: $0.name, weight: 1, template: $0.template.name) }
        var template = Template(name: "t")
        template.custom = [.init("own", .boolean(true))]
        return RunDefinition(
            campaign: campaign, template: template,
            variantTemplates: Dictionary(uniqueKeysWithValues: variants.map { ($0.name, $0.template) }),
            variables: [:], plannedAt: Timestamp(milliseconds: 0))
    }

    @Test func `variants read device values in one order`() throws {
        var first = Template(name: "first")
        first.custom = [.init("a", .text(try text("{{device.os_version}}")))]
        var second = Template(name: "second")
        second.custom = [.init("b", .text(try text("{{device.model}} {{device.os_version}}")))]
        let renderers = try VariantRenderers(try definition([("a", first), ("b", second)]))
        #expect(renderers.fields == [.model, .osVersion])
        let bodies = renderers.renderers.indices.map { variant in
            let payload = renderers[variant].prototypes[0].payload(fields: ["M", "27"], badge: 0)
            return String(decoding: payload, as: UTF8.self)
        }
        #expect(
            bodies == [
                #"{"aps":{"content-available":1},"a":"27"}"#, #"{"aps":{"content-available":1},"b":"M 27"}"#,
            ])
    }

    @Test func `a run without variants has one renderer`() throws {
        let renderers = try VariantRenderers(try definition([]))
        #expect(renderers.renderers.count == 1)
        let payload = renderers[nil].prototypes[0].payload(fields: [], badge: 0)
        #expect(String(decoding: payload, as: UTF8.self) == #"{"aps":{"content-available":1},"own":true}"#)
    }
}
