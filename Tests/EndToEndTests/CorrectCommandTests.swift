import APNsSimulator
import Foundation
import TestSupport
import Testing

/// What was sent and is wrong, and what people see of it in the end.
@Suite(.ownThread, .timeLimit(.minutes(20))) struct `A run that is put right` {
    private func place(
        devices: Int, _ change: (inout SimulatorOptions) -> Void = { _ in }
    ) throws -> Installation {
        let place = try Installation(devices: devices) { options in
            options.simulatesDevices = true
            change(&options)
        }
        let imported = try place.fanfare("devices", "import", "devices.csv")
        try #require(imported.status == 0, "\(imported.errors)")
        for (name, body) in [("wrong", "Tsunami at 9"), ("right", "There is no tsunami, {{when}}")] {
            try place.folder.write(
                "template: \(name)\ndefault_locale: en\nalert: {en: {body: \"\(body)\"}}\n",
                to: "templates/\(name).yaml")
        }
        try place.folder.write(
            """
            campaign: warning
            topic: \(Installation.topic)
            push_type: alert
            template: wrong
            audience: everyone
            correction: right
            variables: {when: today}
            expires_after: 1h

            """, to: "campaigns/warning.yaml")
        return place
    }

    private func payload(_ body: String) -> String { #"{"aps":{"alert":{"body":"\#(body)"}}}"# }

    /// Some are off when it happens, some when it is put right, and some all the time.
    @Test func `those who are online see the right words alone and nobody sees two`() async throws {
        try await OwnThread.run {
            let devices = Nightly.isOn ? 100_000 : 10_000
            let place = try place(devices: devices)
            let (wrong, right) = (payload("Tsunami at 9"), payload("There is no tsunami, today"))
            let offThen = Set(place.tokens[..<1_000])
            let offNow = Set(place.tokens[1_000..<2_000])
            place.simulator.changeDevices { devices in offThen.forEach { devices.goOffline($0) } }
            let run = try place.fanfare("run", "warning", "--yes")
            try #require(run.status == 0, "\(run.errors)")
            #expect(place.simulator.devices().devicesByPayload == [wrong: devices - 1_000])
            place.simulator.changeDevices { devices in offNow.forEach { devices.goOffline($0) } }
            let correction = try place.fanfare("correct", "warning", "--yes")
            try #require(correction.status == 0, "\(correction.errors)")
            let shown = "run 2 corrects run 1, for PRODUCTION: \(devices / 1_000),000 devices"
            #expect(correction.errors.contains(shown), "\(correction.errors)")
            #expect(correction.output.contains("Corrects   run 1 (replace)"))
            // Only who has been off since then still sees what was wrong.
            #expect(place.simulator.devices().devicesByPayload == [wrong: 1_000, right: devices - 2_000])
            let now = Int64(Date().timeIntervalSince1970 * 1000)
            place.simulator.changeDevices { devices in
                offThen.union(offNow).forEach { devices.goOnline($0, nowMs: now) }
            }
            let end = place.simulator.devices()
            #expect(end.devicesByPayload == [right: devices] && end.devicesWithSeveral == 0)
            #expect(try place.fanfare("report", "1").output.contains("Corrected  by run 2"))
            let report = try place.fanfare("report", "2", "--format", "json")
            #expect(report.output.contains(#""kind" : "replace""#), "\(report.output)")
            #expect(try place.fanfare("report", "2", "--check").output.contains("The counts balance."))
            #expect(try place.fanfare("verify").status == 0)
        }
    }

    /// The notification on the screen is then the correction's, and so is a tap on it.
    @Test func `a correction carries references of its own, and a recall none`() async throws {
        try await OwnThread.run {
            let place = try place(devices: 5)
            let campaign = try place.folder.read("campaigns/warning.yaml")
            try place.folder.write(campaign + "feedback: true\n", to: "campaigns/warning.yaml")
            #expect(try place.fanfare("run", "warning", "--yes").status == 0)
            let corrected = try place.fanfare("correct", "warning", "--yes")
            try #require(corrected.status == 0, "\(corrected.errors)")
            func references(_ body: String) -> [String] {
                place.simulator.devices().devicesByPayload.keys.filter { $0.contains(body) }
                    .compactMap { $0.firstMatch(of: /"fanfare":\{"r":"([^"]+)"\}/).map { String($0.1) } }
            }
            let found = references("There is no tsunami, today")
            #expect(Set(found).count == 5, "\(place.simulator.devices().devicesByPayload)")
            let lines = found.enumerated().map { number, reference in
                #"{"id":"00000000-0000-4000-8000-00000000000\#(number)","type":"opened","ref":"\#(reference)"}"#
            }
            try place.folder.write(lines.joined(separator: "\n") + "\n", to: "opens.jsonl")
            let read = try place.fanfare("events", "import", "opens.jsonl")
            #expect(read.output.contains("5 recorded"), "\(read.output) \(read.errors)")
            #expect(try place.fanfare("report", "2").output.contains("(5 of 5 accepted)"))
            #expect(try place.fanfare("report", "1").output.contains("(0 of 5 accepted)"))
            let recalled = try place.fanfare("recall", "1", "--yes")
            #expect(recalled.status == 0, "\(recalled.errors)")
            let silent = place.simulator.devices().devicesByPayload.keys.filter { $0.contains("recall") }
            #expect(silent.allSatisfy { !$0.contains("fanfare") }, "\(silent)")
        }
    }

    @Test func `a text that was corrected in the template's file is sent without further words`() async throws {
        try await OwnThread.run {
            let place = try place(devices: 5)
            let campaign = try place.folder.read("campaigns/warning.yaml").replacing("correction: right\n", with: "")
            try place.folder.write(campaign, to: "campaigns/warning.yaml")
            #expect(try place.fanfare("run", "warning", "--yes").status == 0)
            let unchanged = try place.fanfare("correct", "warning", "--yes")
            #expect(unchanged.status == 65 && unchanged.errors.contains("its template is unchanged"))
            let template = try place.folder.read("templates/wrong.yaml").replacing("at 9", with: "at 10")
            try place.folder.write(template, to: "templates/wrong.yaml")
            let corrected = try place.fanfare("correct", "warning", "--yes")
            #expect(corrected.status == 0, "\(corrected.errors)")
            #expect(place.simulator.devices().devicesByPayload == [payload("Tsunami at 10"): 5])
        }
    }

    /// What was prepared goes at once; what was not is somebody's own word to many.
    @Test(.enabled(if: getuid() == 0 && !isSignedIn))
    func `words that nobody prepared go to many by who may break the glass alone, with a reason`() async throws {
        try await OwnThread.run {
            let place = try place(devices: 20)
            #expect(try place.fanfare("run", "warning", "--yes").status == 0)
            try place.folder.write(
                "template: other\ndefault_locale: en\nalert: {en: {body: \"Something else\"}}\n",
                to: "templates/other.yaml")
            try place.configure(
                more: """
                    approvals: {rules: [{above: 10}], break_glass: true, break_glass_by: [dora]}
                    people: {dora: ["os:dora"]}
                    """)
            func correct(as user: String, _ more: String...) throws -> Program.Result {
                try Program.run(
                    ["correct", "1", "--yes", "--template", "other"] + more, in: place.folder,
                    environment: ["SUDO_USER": user])
            }
            let other = try correct(as: "carl", "--reason", "quake")
            #expect(other.status == 3 && other.errors.contains("does not let os:carl"), "\(other.errors)")
            #expect(other.errors.contains("the prepared one, right"), "\(other.errors)")
            let silent = try correct(as: "dora")
            #expect(silent.status == 3 && silent.errors.contains("--reason TEXT"), "\(silent.errors)")
            let sent = try correct(as: "dora", "--reason", "quake")
            #expect(sent.status == 0, "\(sent.errors)")
            #expect(place.simulator.devices().devicesByPayload == [payload("Something else"): 20])
            #expect(try place.fanfare("audit").output.contains("quake"))
            let prepared = try Program.run(
                ["correct", "1", "--yes", "--again"], in: place.folder, environment: ["SUDO_USER": "carl"])
            #expect(prepared.status == 0, "\(prepared.errors)")
            // What stands in it by now is not what was prepared, and neither is what somebody puts into it.
            for words in [["--var", "when=tomorrow"], []] {
                if words.isEmpty {
                    let path = place.folder.file("templates/right.yaml")
                    let text = try String(contentsOfFile: path, encoding: .utf8)
                    try place.folder.write(text.replacing("There is no", with: "What a"), to: "templates/right.yaml")
                }
                let changed = try Program.run(
                    ["correct", "1", "--yes", "--again"] + words, in: place.folder, environment: ["SUDO_USER": "carl"])
                let advice = words.isEmpty ? "right has changed since the run was created" : "without --var"
                #expect(changed.status == 3 && changed.errors.contains(advice), "\(changed.errors)")
            }
        }
    }

    @Test(.enabled(if: getuid() == 0 && !isSignedIn))
    func `the prepared words are signed with the plan`() async throws {
        try await OwnThread.run {
            let place = try place(devices: 20)
            try place.configure(more: "approvals: {rules: [{above: 10}]}\npeople: {dora: [\"os:dora\"]}")
            func fanfare(_ words: String..., as user: String) throws -> Program.Result {
                try Program.run(words, in: place.folder, environment: ["SUDO_USER": user])
            }
            let asked = try fanfare("run", "warning", "--yes", as: "carl")
            let plan = try #require(
                asked.errors.firstMatch(of: /fanfare approve (p2-[0-9a-f-]+)/)?.1, "\(asked.errors)")
            #expect(try place.fanfare("approvals", "\(plan)").output.contains("There is no tsunami, today"))
            #expect(try fanfare("approve", "\(plan)", as: "dora").output.contains("approved, 1 of 1"))
            let path = place.folder.file("templates/right.yaml")
            let text = try String(contentsOfFile: path, encoding: .utf8)
            try place.folder.write(text.replacing("There is no", with: "What a"), to: "templates/right.yaml")
            let refused = try fanfare("run", "warning", "--yes", as: "carl")
            #expect(refused.status == 3 && refused.errors.contains("0 of 1 signed"), "\(refused.errors)")
            try place.folder.write(text, to: "templates/right.yaml")
            // What was signed was replaced by nobody: a run that somebody starts may wait in several versions.
            #expect(try fanfare("run", "warning", "--yes", as: "carl").status == 0)
            #expect(try fanfare("correct", "1", "--yes", as: "carl").status == 0)
            #expect(place.simulator.devices().devicesByPayload == [payload("There is no tsunami, today"): 20])
        }
    }

    @Test func `a wrong value is corrected in the run's own template, and the same text is refused`() async throws {
        try await OwnThread.run {
            let place = try place(devices: 20)
            try place.folder.write(
                "campaign: plain\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: right\naudience: everyone\n"
                    + "variables: {when: \"\"}\nexpires_after: 1h\n", to: "campaigns/plain.yaml")
            #expect(try place.fanfare("run", "plain", "--yes", "--var", "when=todya").status == 0)
            let unprepared = try place.fanfare("correct", "plain", "--yes")
            #expect(unprepared.status == 65 && unprepared.errors.contains("with --var"), "\(unprepared.errors)")
            let same = try place.fanfare("correct", "plain", "--yes", "--var", "when=todya")
            #expect(same.status == 65 && same.errors.contains("the same texts as run 1"), "\(same.errors)")
            let right = try place.fanfare("correct", "plain", "--yes", "--var", "when=today")
            #expect(right.status == 0, "\(right.errors)")
            #expect(place.simulator.devices().devicesByPayload == [payload("There is no tsunami, today"): 20])
        }
    }

    @Test func `an app that knows how takes it off the screens`() async throws {
        try await OwnThread.run {
            let place = try place(devices: 50)
            #expect(try place.fanfare("run", "warning", "--yes").status == 0)
            let recall = try place.fanfare("recall", "1", "--yes")
            #expect(recall.status == 0, "\(recall.errors)")
            #expect(recall.errors.contains("a recall does not wait for the silent budget"), "\(recall.errors)")
            #expect(recall.errors.contains("run 2 removes run 1 from the screens, for PRODUCTION: 50 devices"))
            #expect(place.simulator.devices().devicesByPayload == [:])
            // More of them within the hour than any background campaign may send.
            for _ in 0..<4 { #expect(try place.fanfare("recall", "1", "--yes", "--again").status == 0) }
            #expect(place.simulator.counts().accepted == 6 * 50)
            #expect(try place.fanfare("verify").status == 0)
            let log = place.simulator.log().suffix(50)
            #expect(log.allSatisfy { $0.pushType == "background" && $0.priority == "5" })
        }
    }

    /// Cut short, it goes to those who had got it by then, to the last of them first, and to nobody else.
    @Test func `a run that was stopped half-way is put right for those whom it had reached`() async throws {
        try await OwnThread.run {
            let place = try place(devices: 400) { options in
                options.streamsMax = 8
                // The rest would take a minute, so that two commands find it in the middle on any machine.
                options.faults = [FaultRule(when: .always.skipping(150), action: .delay(milliseconds: 2000))]
            }
            let run = try RunningProgram(["run", "warning", "--yes"], in: place.folder)
            try run.wait { place.simulator.counts().requests > 150 }
            let early = try place.fanfare("correct", "warning", "--yes")
            #expect(early.status == 75 && early.errors.contains("run 1 is still being sent"), "\(early.errors)")
            #expect(try place.fanfare("cancel", "warning").status == 0)
            _ = try run.finish()
            place.simulator.setFaults([])
            let reached = place.simulator.log().filter { $0.status == 200 }.compactMap(\.token)
            let correction = try place.fanfare("correct", "1", "--yes", "--var", "when=really")
            #expect(correction.status == 0, "\(correction.errors)")
            let right = payload("There is no tsunami, really")
            #expect(place.simulator.devices().devicesByPayload == [right: Set(reached).count])
            #expect(Set(reached).count < 400)
        }
    }

    @Test func `what cannot be put right is refused with the reason`() async throws {
        try await OwnThread.run {
            let place = try place(devices: 20)
            func refused(_ words: [String], _ status: Int32, _ why: String, line: Int = #line) throws {
                let result = try Program.run(words, in: place.folder)
                let location = SourceLocation(fileID: #fileID, filePath: #filePath, line: line, column: 1)
                #expect(result.status == status, "\(result.errors)", sourceLocation: location)
                #expect(result.errors.contains(why), "\(result.errors)", sourceLocation: location)
            }
            try place.folder.write(
                "campaign: nobody\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: wrong\n"
                    + "audience: locale = \"fr\"\nexpires_after: 1h\ncollapse: none\n", to: "campaigns/nobody.yaml")
            #expect(try place.fanfare("run", "nobody", "--yes").status == 3)
            try refused(["correct", "nobody"], 3, "reached no device: there is nothing to correct")
            #expect(try place.fanfare("run", "warning", "--yes").status == 0)
            try refused(["correct", "warning", "--template", "rihgt"], 66, "did you mean \"right\"?")
            try refused(["correct", "warning", "--var", "wehn=x"], 65, "did you mean \"when\"?")
            try refused(["correct", "warning", "--var", "when="], 65, "template right needs --var when=...")
            try refused(["correct", "99"], 66, "99")
            #expect(try place.fanfare("correct", "warning", "--yes").status == 0)
            try refused(["correct", "warning"], 3, "run 3 (finished) already exists as warning.correction for run 2")
            try refused(["correct", "3"], 65, "run 3 is the correction of run 2; `fanfare correct 2 --again`")
            #expect(try place.fanfare("correct", "warning", "--again", "--var", "when=ever").status == 0)
            let devices = place.simulator.devices()
            #expect(devices.devicesByPayload == [payload("There is no tsunami, ever"): 20])
            #expect(try place.fanfare("report", "2").output.contains("Corrected  by run 3, 4"))
            // A test goes to one device, who can be sent another one.
            #expect(try place.fanfare("test-send", "warning", "--device", "install-0").status == 0)
            try refused(["correct", "5"], 65, "is a test")
            try place.folder.write(
                "campaign: stacked\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: wrong\n"
                    + "audience: everyone\nexpires_after: 1h\ncollapse: none\n", to: "campaigns/stacked.yaml")
            #expect(try place.fanfare("run", "stacked", "--yes").status == 0)
            try refused(["correct", "stacked", "--template", "right"], 3, "was sent without a collapse id")
            #expect(try place.fanfare("prune-outcomes", "--older-than", "1ms", "--yes").status == 0)
            try refused(["correct", "2", "--again"], 3, "were pruned at")
        }
    }

    @Test func `a correction is checked with its campaign`() async throws {
        try await OwnThread.run {
            let place = try place(devices: 1)
            let good = try place.fanfare("validate", "campaigns/warning.yaml")
            #expect(good.status == 0 && good.output.contains("correction en"), "\(good.output)\(good.errors)")
            try place.folder.write(
                "template: right\ndefault_locale: en\nalert: {en: {body: \"{{whne}}\"}}\n", to: "templates/right.yaml")
            let bad = try place.fanfare("validate", "campaigns/warning.yaml")
            #expect(bad.status == 65 && (bad.output + bad.errors).contains("whne"), "\(bad.output)\(bad.errors)")
        }
    }
}
