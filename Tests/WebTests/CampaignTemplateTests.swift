import CampaignFiles
import Model
import Testing

@testable import Campaigns
@testable import Web

/// A misspelt name in a template shows nothing, and nobody is told: each is compared with its model.
struct CampaignTemplateTests {
    private static let problem = ValidationResult.Problem(
        path: "c.yaml", line: 2, column: 1, severity: "error", what: "unknown key", advice: "leave it out")

    private static let entry = ScheduleResult.Entry(
        campaign: "c", occurrence: "2027-03-28T02:30", startsAt: "2027-03-28T01:00:00Z",
        startsAtLocal: "2027-03-28T02:00", lastStartsAt: "2027-03-28T14:30:00Z", byEachClock: true,
        missedAfter: "2027-03-28T15:30:00Z", topic: "com.example.app", priority: 10, zone: "recipient",
        clockChanges: [.init(zone: "Europe/Berlin", kind: "skipped", startsAtLocal: "2027-03-28T03:00")],
        missingValues: ["title"])

    private static func faults<Content: Sendable>(_ template: PageTemplate, _ content: Content) -> [String] {
        let page = PageRenderer.Page(
            title: "t", menu: PageMenu(for: .author, at: "/", waiting: 1),
            visitor: .init(name: "anna", role: "author"), version: "1", content: content)
        // The frame is tested with its own pages: what is inside sees the page and the content.
        var text = PageTemplate.texts[template.rawValue, default: ""]
        for frame in ["{{<layout}}{{$content}}", "{{/content}}{{/layout}}"] { text = text.replacing(frame, with: "") }
        return TemplateKeys(
            page, template.rawValue,
            in: PageTemplate.texts.merging([template.rawValue: "{{#content}}\(text){{/content}}"]) { $1 }
        ).faults
    }

    private static var shared: SharedTemplate? {
        SharedTemplate(
            TemplateResult(
                name: "t", path: "t.yaml", ok: true, errors: 0, warnings: 0, locales: [], campaigns: ["c", "other"]),
            besides: "c")
    }

    private static var editor: FileEditor {
        var editor = FileEditor(
            .campaign, file: "c", path: "c.yaml", of: "/campaigns/c", text: "campaign: c\ntopik: x\n", etag: "e",
            problems: [problem], readOnly: "not from here")
        editor.conflict = .init("changed", yours: "a", theirs: "b")
        editor.refusal = ["no"]
        editor.carried = [.init(name: "v.title", value: "x")]
        editor.shared = shared
        return editor
    }

    private static var plan: PlanView {
        let json = """
            {"campaign": "c", "template": "t", "audience": "", "headers": {}, "reach": 1, "selected": 2,
             "by_environment": {"production": 1}, "sent_to": "PRODUCTION: 1 device", "by_zone": [], "by_variant": [], "suppressed": {"holdout": 1},
             "in_quiet_hours": 1, "quiet_hours": {"waiting": 1, "left_out": 0, "last_end_at": "2026-12-01T08:00:00Z"}, "payload_limit_bytes": 4096, "refusals": ["no"], "plan": "p1",
             "sent_before": {"run": 1, "occurrence": "o", "state": "finished", "created_at": "x", "summary": "s"},
             "refused_guards": [{"name": "max_reach", "message": "too many"}], "unset_variables": ["title"],
             "waves": [{"starts_at": "x", "devices": 1, "zones": ["UTC"], "expired": 0}],
             "texts": [{"locale": "en", "devices": 1, "languages": [], "payload_max_bytes": 9, "payload_min_bytes": 9, "sample": "{}"}],
             "since_last_run": {"run": 1, "reach_before": 2, "texts": [], "variables": ["v"], "campaign_keys": []}}
            """
        guard let result = try? ResultJSON.value(PlanResult.self, from: json) else { preconditionFailure("plan") }
        var plan = PlanView(result, isNow: true)
        (plan.moreWaves, plan.emptyReason) = ("and 2 more", "none")
        plan.facts[0].code = "x"
        return plan
    }

    private static var page: CampaignPage {
        let notification = PreviewResult.Notification(
            payload:
                #"{"aps": {"alert": {"title": "T", "subtitle": "S", "body": "\#(String(repeating: "b", count: 300))"}}}"#,
            locale: "en", variant: nil, payloadMaxBytes: 400, limitBytes: 4096)
        var phone = PhoneScreen(notification, topic: "com.example.app", remarks: ["held out"])
        phone.lookedUp = ["loc-key X"]
        (phone.picture, phone.buttons) = ("https://example.com/a.jpg", "EPISODE")
        phone.headline?.rest = "t"
        phone.subhead?.rest = "t"
        var page = CampaignPage(
            name: "c", address: "/campaigns/c", stopAddress: "/campaigns/c/stop",
            facts: [.init(name: "App", value: "x")], state: "ok",
            mark: "finished",
            starts: "by hand", nexts: [.init(entry)],
            lastRun: .init(run: 1, state: "finished", when: "then", reach: "all"), problem: ["no"], files: [editor],
            changes: [.init(address: "/changes#change-1", summary: "waits")],
            phones: [phone], phonesReason: "no", variables: [.init(name: "v", value: "x", placeholder: "p", rows: 1)],
            device: "d",
            variants: [.init(name: "a", isChosen: true)], hasVariants: true, hasSchedule: true, isNow: true,
            mayPlan: true,
            mayTest: true, testDevices: ["Anna"], plansAddress: "/plans?campaign=c", test: test)
        page.responses = PageHTML(time: "then")
        page.composer = composer
        page.composer?.shared = shared
        page.composer?.nexts = page.nexts
        page.composer?.troubles = editor.troubles
        page.composer?.troubles[0].fieldID = "c-badge"
        var yours = ComposerFields(["badge": "1", "sound": "a"])
        yours["link"] = "x"
        page.composer?.conflict = ComposerConflict(
            opened: ComposerFields(["badge": "0", "link": "x"]), yours: yours,
            theirs: ComposerFields(["badge": "2", "link": "y"]))
        page.filesReason = "no"
        return page
    }

    private static var composer: ComposerForm {
        let campaign = """
            {campaign: c, topic: t, push_type: alert, template: c, variables: {v: x}, stages: [],
            audience: 'segment("s") and tag("t") and locale in ("en") and attribute("a") = "b"',
            schedule: {cron: "1 2 3 * *", zone: UTC}}
            """
        let files = ComposedFiles(
            campaign: campaign, template: "{template: c, alert: {en: {title: x}, de: {title: y}}}")
        var form = ComposerForm(
            files, files.fields, address: "/campaigns/c/compose", campaignTag: "a", templateTag: "b")
        var values = AudienceValuesResult()
        values.locales = [.init("fr", devices: 2)]
        values.tags = [.init("t", devices: 2)]
        values.appVersions = [.init("4.2", devices: 2)]
        form.offer(values, segments: ["s"], files.fields)
        return form
    }

    private static var test: TestState {
        TestState(run: 1, summary: "w", mark: "accepted", isWaiting: true, again: "/campaigns/c?look=1")
    }

    @Test func `every name in the templates of plans is one of their models`() {
        let link = PlanPage.Link(address: "/x", label: "x")
        var plan = PlanPage(
            address: "/plans/1", heading: "Plan 1", campaign: link, change: link, excerpt: "w", made: "anna",
            state: "ready",
            mark: "finished", next: "Send it.", link: link, plan: Self.plan, values: [.init(name: "v", value: "x")],
            phones: Self.page.phones, mayAsk: true,
            start: .init(occurrence: "o", guards: [.init(name: "repeat", label: "again")]), mayTest: true, device: "d",
            variants: ["a"], hasVariants: true, test: Self.test)
        plan.problem = ["no"]
        plan.choose("Anna", among: ["Anna"])
        plan.device = "d"
        plan.note = "n"
        plan.signatures = [.init(summary: "s", fault: "f")]
        plan.phonesReason = "no"
        #expect(Self.faults(.plan, plan) == [])
        let row = PlanList.Row(
            address: "/plans/1", name: "Plan 1", campaign: "c", excerpt: "w", reach: "1", state: "ready",
            mark: "finished",
            made: "anna")
        #expect(
            Self.faults(.plans, PlanList(campaign: "c", rows: [row], isEmpty: false, older: "/plans?before=1")) == [])
    }

    @Test func `every name in the template of a start is one of its model`() throws {
        var campaign = Campaign(name: "c", topic: "t", pushType: .alert, template: "t")
        campaign.schedule = Schedule(trigger: .cron("0 9 * * *"))
        campaign.schedule?.zone = .named("UTC")
        campaign.variables = ["v": "x"]
        let timetable = try #require(campaign.schedule.flatMap(Timetable.init))
        let now = Timestamp(seconds: 0)
        let start = GiveValues.Start(
            occurrence: try #require(timetable.next(after: now)), timetable: timetable,
            definition: RunDefinition(
                campaign: campaign, template: Template(name: "t"), variables: campaign.variables, plannedAt: now),
            given: OccurrenceValues(
                campaign: "c", occurrence: "o", startsAt: now, variables: [:], givenAt: now, givenBy: "anna", giver: "a"
            ),
            missing: [], run: nil)
        let caller = Caller(name: "anna", role: .author, proof: .session)
        var page = NextStartPage("c", start, [start], typed: [:], for: caller, now: now)
        (page.phones, page.phonesReason) = (Self.page.phones, "no")
        (page.problem, page.done, page.run) = (["no"], "Saved.", .init(address: "/runs/1", label: "run 1"))
        #expect(Self.faults(.nextStart, page) == [])
    }

    @Test func `every name in the templates of campaigns and calendar is one of their models`() {
        let row = CampaignList.Row(
            CampaignResult(
                name: "c", path: "c.yaml", ok: true, errors: 0, warnings: 0, nextOccurrences: [Self.entry]))
        var list = CampaignList(rows: [row], isEmpty: false, folder: "campaigns", mayMake: true)
        list.rows[0].lastRun = .init(run: 1, state: "finished", when: "then", reach: "all")
        list.rows[0].templateAddress = "/templates/t"
        list.isOff = true
        #expect(Self.faults(.campaigns, list) == [])
        #expect(Self.faults(.campaign, Self.page) == [])
        var new = NewFilePage(
            kind: .campaign, folder: "campaigns", topics: .init(["a"], chosen: nil),
            templates: .init(["t"], chosen: nil))
        new.made = "t"
        new.problem = ["no"]
        new.show(Self.editor)
        #expect(Self.faults(.newFile, new) == [])
        let used = TemplateResult(
            name: "t", path: "t.yaml", ok: true, errors: 0, warnings: 0, locales: ["en"], campaigns: ["c"])
        var template = TemplatePage(
            TemplateDetailResult(template: used, text: "template: t", etag: "e", problems: []), readOnly: nil)
        template.problem = ["no"]
        template.files = [Self.editor]
        template.changes = [.init(address: "/changes#change-1", summary: "waits")]
        (template.phones, template.phonesReason) = (Self.page.phones, "no")
        template.deleteAddress = "/templates/t/delete"
        #expect(Self.faults(.template, template) == [])
        let templates = TemplateList(rows: [.init(used)], isEmpty: false, folder: "templates", mayMake: true)
        #expect(Self.faults(.templates, templates) == [])
        for parts in ["campaign-parts", "composer-parts"] {
            #expect(TemplateKeys(Self.page, parts, in: PageTemplate.texts).faults == [])
        }
        var step = SetupPage.Step("App", isDone: true, done: "x", open: "y", link: .init(address: "/", label: "x"))
        (step.problem, step.uploadMax) = ("no", "50 MB")
        step.keys = [
            .init(
                id: "a", topic: "a", environments: "b", teamID: "c", keyID: "d", exists: true, obstacle: "e",
                answers: ["f"], offersKeeping: true)
        ]
        step.newApp = .init(
            topic: "a", teamID: "b", keyID: "c", environments: [.init(value: "a", label: "b", isChosen: true)],
            obstacle: "no", isOpen: true)
        step.testDevices = .init(
            devices: [.init(name: "a", installation: "b", mayRemove: true)], hasDevices: true, obstacle: "no",
            mayAdd: true, name: "a", device: "b")
        #expect(Self.faults(.setup, SetupPage(steps: [step], verdict: "x", colour: "paused", done: "y")) == [])
        let gallery = NewCampaignPage(
            name: "c", topics: .init(["a"], chosen: nil), hasSeveral: true,
            kinds: [.init(kind: "blank", title: "Blank", summary: "x", isChosen: true)], problem: "no")
        #expect(Self.faults(.newCampaign, gallery) == [])
        let json = """
            {"zone": "UTC", "now": "2027-03-27T00:00:00Z", "occurrences": [], "truncated": true,
             "halted": [{"run": 1, "campaign": "c", "occurrence": "o", "halt": "late"}]}
            """
        guard var schedule = try? ResultJSON.value(ScheduleResult.self, from: json) else {
            preconditionFailure("schedule")
        }
        schedule.occurrences = Array(repeating: Self.entry, count: 5)
        let day = CivilDay(year: 2027, month: 3, day: 28)
        var calendar = CalendarPage(schedule, first: day, weeks: 2, today: day, wrong: ["x.yaml"])
        #expect(calendar.days[0].more == ["and 1 more of \(Self.entry.campaign)"])
        calendar.days[0].entries[0].state = "finished"
        calendar.days[0].entries[0].isStopped = true
        (calendar.days[0].entries[0].values, calendar.days[0].entries[0].valuesAddress) = ("x", "/x")
        calendar.changes = [.init(address: "/changes#change-1", summary: "waits")]
        #expect(Self.faults(.calendar, calendar) == [])
    }
}
