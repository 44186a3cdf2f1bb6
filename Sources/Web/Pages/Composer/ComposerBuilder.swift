import CampaignFiles
import Campaigns
import Foundation
import Model

/// Builds the page of a campaign with the composer, from the saved files or with the fields of a form.
struct ComposerBuilder: Sendable {
    private static let startsShown = 5
    /// The groups of fields of which a form sends only those that are switched on, by the field that is always sent.
    private static let switches = ["who": "who.", "start": "repeat."]
    /// The maximum number of fields of a form. A page with more would take seconds.
    private static let fieldsMax = 2_000

    /// The texts of the two files with the form's changes.
    struct Edited: Sendable {
        var fields: ComposerFields
        var drafts: [CampaignPageBuilder.Draft]
        /// The changed texts, by path.
        var texts: [String: String]
    }

    let pages: CampaignPageBuilder

    private var cases: UseCases { pages.cases }

    /// Returns the page with the composer. If the form cannot show the files, the page shows them instead, and says
    /// why.
    ///
    /// - Parameter fields: the form that was sent. `nil` for the saved files.
    func page(_ input: CampaignPage.Input, _ fields: [String: String]? = nil) async throws -> CampaignPage {
        var page = try await pages.page(input, hasPhones: fields == nil)
        let texts = try await putForm(fields, into: &page)
        if fields != nil { await pages.putPhones(input, drafts: texts, of: "the form", into: &page) }
        return page
    }

    /// Puts the form into the page, or the reason why there is none. Returns the form's texts by path, if they differ
    /// from those of the files.
    private func putForm(
        _ fields: [String: String]?, into page: inout CampaignPage
    ) async throws -> [String: String] {
        guard page.files.allSatisfy(\.isEditable) else { return [:] }
        guard let files = files(of: page) else {
            page.filesReason =
                "The form shows a campaign with its template, but the template file does not exist. Create it, or name another one in the file."
            return [:]
        }
        if let obstacle = files.obstacle {
            page.filesReason = obstacle
            return [:]
        }
        let posted = try fields.map { try Self.posted($0, over: files.fields) } ?? files.fields
        var form = form(files, posted, page)
        var texts: [String: String] = [:]
        form.show(located(page.files.flatMap(\.troubles), in: files, page))
        do {
            if let fields {
                let edited = try edited(page, files, posted)
                texts = edited.texts
                form = self.form(files, edited.fields, page)
                form.isUnsaved = !edited.drafts.isEmpty
                form.keepOpened(fields)
                form.show(try await troubles(of: edited, in: page))
                let problems = Self.problems(of: edited.fields, fields)
                if !problems.isEmpty { form.show(problems) }
            }
        } catch let fault as YAMLText.Fault {
            page.problem = [Self.summary(of: fault)]
        }
        form.nexts = try await cases.files.starts(
            pages.name, drafts: texts, atMost: Self.startsShown, now: cases.now
        )
        .map { CampaignPage.Next($0) }
        await offer(try cases.files.topic(ofCampaign: pages.name) ?? "", posted, in: &form)
        page.composer = form
        return texts
    }

    /// Returns the page with the form's changes to files that another person has changed since the form was opened.
    func merged(_ input: CampaignPage.Input, _ form: [String: String]) async throws -> CampaignPage {
        let saved = try await pages.page(input, hasPhones: false)
        let known = files(of: saved)?.fields ?? ComposerFields()
        let conflict = ComposerConflict(
            opened: ComposerConflict.fields(of: form["opened", default: ""]),
            yours: try Self.posted(form, over: known), theirs: known)
        // The form has seen their texts now.
        let both = form.filter { !$0.key.hasPrefix("c.") && !$0.key.hasPrefix("etag.") && $0.key != "opened" }
            .merging(conflict.merged.values.map { ("c.\($0.key)", $0.value) }) { $1 }
        var page = try await page(input, both)
        page.composer?.conflict = conflict
        page.problem = [
            "Not saved: another user changed the campaign after you opened it. Check the form, and save again."
        ]
        return page
    }

    /// Returns the changes that a form makes to the files of a page.
    func edited(_ page: CampaignPage, _ fields: [String: String]) throws -> Edited {
        guard let files = files(of: page), files.obstacle == nil else {
            throw Problem.invalid([.init(detail: "The form cannot show these files. Edit them as files.")])
        }
        return try edited(page, files, try Self.posted(fields, over: files.fields))
    }

    private func edited(_ page: CampaignPage, _ files: ComposedFiles, _ fields: ComposerFields) throws -> Edited {
        let new = try files.edited(fields)
        var edited = Edited(fields: fields, drafts: [], texts: [:])
        for (editor, text) in zip(page.files, [new.campaign, new.template]) where editor.text != text {
            let kind: ManageFiles.Kind = editor.kind == ManageFiles.Kind.campaign.rawValue ? .campaign : .template
            edited.drafts.append(.init(kind: kind, file: editor.file, text: text, etag: editor.etag))
            edited.texts[try cases.files.path(kind, editor.file)] = text
        }
        edited.fields = files.fields.changed(
            to: fields, declaring: ComposedFiles(campaign: new.campaign, template: new.template).fields)
        return edited
    }

    /// Returns the plan of the form's next start. Throws if the form has errors. Fields that it lacks are as in the
    /// files.
    func planned(_ form: [String: String]) async throws -> PlanCampaign.Planned {
        let campaign = try cases.files.current(.campaign, pages.name).text ?? ""
        let template = cases.files.templates(ofText: campaign, name: pages.name).first ?? ""
        let files = ComposedFiles(
            campaign: campaign, template: try cases.files.current(.template, template).text ?? "")
        let fields = try Self.posted(form, over: files.fields)
        guard files.obstacle == nil, Self.problems(of: fields, form).isEmpty else { throw YAMLText.Fault.unreadable }
        let new = try files.edited(fields)
        let source = try cases.files.source(
            pages.name,
            drafts: [
                try cases.files.path(.campaign, pages.name): new.campaign,
                try cases.files.path(.template, template): new.template,
            ])
        try await CampaignAccess(cases, pages.caller).requireSegments(of: source.campaign)
        return try await cases.planning(source.campaign.topic).plan(
            source.definition(with: [:], plannedAt: cases.now), occurrence: nil, isNow: false, now: cases.now)
    }

    static func summary(of fault: YAMLText.Fault) -> String {
        switch fault {
        case .unreadable: "Not changed: a file has an unusual form that only the file view can change."
        case .tooMany:
            "Not changed: too many changes at once for files of this size. Save some of them first."
        case .unsuitable(let path):
            "Not changed: the value \(path) is written in a form that only the file view can change."
        }
    }

    private func files(of page: CampaignPage) -> ComposedFiles? {
        // A campaign with variants has further templates.
        guard page.files.count >= 2, page.files.prefix(2).allSatisfy(\.hasText) else { return nil }
        return ComposedFiles(campaign: page.files[0].text, template: page.files[1].text)
    }

    private func form(_ files: ComposedFiles, _ fields: ComposerFields, _ page: CampaignPage) -> ComposerForm {
        var form = ComposerForm(
            files, fields, address: page.address + "/compose", campaignTag: page.files[0].etag,
            templateTag: page.files[1].etag)
        form.shared = page.files[1].shared
        return form
    }

    /// Returns the fields that a form sent, with those that were switched off.
    static func posted(_ form: [String: String], over known: ComposerFields) throws -> ComposerFields {
        guard form.count <= fieldsMax else {
            throw Problem.invalid([.init(detail: "The form has more than \(fieldsMax) fields.")])
        }
        var fields = ComposerFields()
        for (name, value) in form where name.hasPrefix("c.") {
            fields[String(name.dropFirst(2))] = value.replacing("\r\n", with: "\n")
        }
        let groups = switches.filter { fields.values[$0.key] != nil }.values
        for name in known.values.keys where fields.values[name] == nil && groups.contains(where: name.hasPrefix) {
            fields[name] = ""
        }
        for (kind, state) in [("segment", "in"), ("tag", "in"), ("attribute", "")] {
            guard let name = form["n.\(kind)"]?.trimmingCharacters(in: .whitespaces), !name.isEmpty else { continue }
            fields["who.\(kind).\(name)"] = state.isEmpty ? form["n.\(kind).value", default: ""] : state
        }
        if form["do"] == "language", let tag = form["language"].flatMap(language) {
            for part in ComposerFields.textParts where fields.values["alert.\(tag).\(part)"] == nil {
                fields["alert.\(tag).\(part)"] = ""
            }
        }
        for (name, value) in form where name.hasPrefix("remove.") && value == "on" {
            for part in ComposerFields.textParts { fields["alert.\(name.dropFirst(7)).\(part)"] = "" }
            fields[name] = "on"
        }
        return fields
    }

    /// Returns the problems of the two files with the changed texts.
    private func troubles(of edited: Edited, in page: CampaignPage) async throws -> [FileEditor.Trouble] {
        let campaign = page.files[0]
        let text = edited.drafts.first { $0.kind == .campaign }?.text ?? campaign.text
        let template = edited.drafts.first { $0.kind == .template }?.text ?? page.files[1].text
        let files = ComposedFiles(campaign: text, template: template)
        guard !edited.texts.isEmpty else { return located(page.files.flatMap(\.troubles), in: files, page) }
        let access = CampaignAccess(cases, pages.caller)
        var found = try await access.validated(.campaign, campaign.file, text: text, beside: edited.texts).problems
        if let draft = edited.drafts.first(where: { $0.kind == .template }) {
            // A save checks the template by itself, too, and each campaign that uses it. What was wrong in another file
            // before does not prevent the save.
            let path = page.files[1].path
            let saved = try await access.validated(.template, draft.file, text: page.files[1].text).problems
            let new = try await access.validated(.template, draft.file, text: draft.text, beside: edited.texts).problems
            found += new.filter { ($0.path == path || !saved.contains($0)) && !found.contains($0) }
        }
        return located(found.map { FileEditor.Trouble($0, in: nil) }, in: files, page)
    }

    /// Adds the fields that the problems concern.
    private func located(
        _ troubles: [FileEditor.Trouble], in files: ComposedFiles, _ page: CampaignPage
    ) -> [FileEditor.Trouble] {
        troubles.map { trouble in
            guard
                let isTemplate = [page.files[0].path, page.files[1].path].firstIndex(of: trouble.path).map({ $0 == 1 })
            else { return trouble }
            var trouble = trouble
            trouble.fieldID = files.field(line: trouble.line, column: trouble.column, isTemplate: isTemplate)
                .map(ComposerForm.id)
            return trouble
        }
    }

    /// Offers the values to choose from. A form without them is better than none, so a failed read offers nothing.
    private func offer(_ topic: String, _ fields: ComposerFields, in form: inout ComposerForm) async {
        let values = pages.caller.sees(topic) ? try? await cases.audienceValues.latest(topic) : nil
        let segments = try? await SegmentAccess(cases, pages.caller).all()
        form.offer(values ?? AudienceValuesResult(), segments: segments?.map(\.name) ?? [], fields)
        if values == nil {
            form.missing = "The devices are being counted. Reload this page to see the languages without a text."
        }
    }
}

extension ComposerFields {
    /// Returns the fields as a form changed them, without removed languages, and with the variables that its texts use
    /// first.
    fileprivate func changed(to form: ComposerFields, declaring new: ComposerFields) -> ComposerFields {
        var fields = ComposerFields(values.merging(form.values) { $1 })
        for language in fields.languages where form["remove.\(language)"] == "on" {
            for part in Self.textParts { fields.values["alert.\(language).\(part)"] = nil }
        }
        for name in form.names(behind: ComposedFiles.removal) where new.values["variables.\(name)"] == nil {
            fields.values["variables.\(name)"] = nil
        }
        for name in new.names(behind: "variables.") where fields.values["variables.\(name)"] == nil {
            fields["variables.\(name)"] = ""
        }
        return fields
    }
}

extension ComposerBuilder {
    /// Returns what a person has to correct in the fields themselves, in words of the form.
    static func problems(of fields: ComposerFields, _ form: [String: String]) -> [FileEditor.Trouble] {
        var problems: [FileEditor.Trouble] = []
        func add(_ field: String, _ summary: String) {
            problems.append(
                .init(
                    severity: "error", place: "", line: 0, summary: summary, isObstacle: true,
                    fieldID: ComposerForm.id(field)))
        }
        if fields["start"] == "once", fields["at.date"].isEmpty || fields["at.time"].isEmpty {
            add(fields["at.date"].isEmpty ? "at.date" : "at.time", "When: choose a date and a time.")
        }
        if fields["start"] == "repeat", fields["repeat.time"].isEmpty, fields["repeat.cron"].isEmpty {
            add("repeat.time", "When: choose a time.")
        }
        let opened = ComposerConflict.fields(of: form["opened", default: ""])
        if !fields.usesUnknownZone, !fields["unknown_zone"].isEmpty, fields["unknown_zone"] != opened["unknown_zone"] {
            add(
                "unknown_zone",
                "When: “Time zone for devices without one” counts only with “each device’s own clock” or with quiet hours. Choose one of them, or empty the field."
            )
        }
        if fields["who"] == "choose" {
            for name in fields.unknownCountries { add("who.countries", ComposerFields.summary(unknownCountry: name)) }
            if fields.audience.isEmpty { add("who", "Who: choose at least one condition, or Everyone.") }
            if !fields["who.seen"].isEmpty, Int(fields["who.seen"]).map({ $0 < 1 }) ?? true {
                add("who.seen", "Who: “Seen within” takes a number of days.")
            }
        }
        if form["do"] == "language", let text = form["language"], language(text) == nil {
            add(
                "language",
                "“\(text.onOneLine)” is not a language. Write its English name or its tag, such as German, de or pt-BR."
            )
        }
        return problems
    }

    /// Returns the tag of a language as files have it; `nil` if a text is no tag.
    static func language(_ text: String) -> String? {
        let text = text.trimmingCharacters(in: .whitespaces)
        if let code = EnglishNames.languageCode(named: text) { return code }
        let tag = LocaleTag(written: text)?.description
        // A tag may have a language of 5 to 8 letters, but there is none: such a text is a word.
        return tag?.prefix(while: { $0 != "-" }).count ?? 0 > 3 ? nil : tag
    }
}
