import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// The steps from an empty installation to the first broadcast, each with its state and the form that does its work.
struct SetupPages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/setup", .read, show), .post("/setup/key", .setup, uploadKey), .post("/setup/app", .setup, addApp),
            .post("/setup/test-devices", .setup, addTestDevice),
            .post("/setup/test-devices/remove", .setup, removeTestDevice),
        ]) + ImportPages(cases: cases, setup: self).routes
    }

    /// The number of newest broadcasts among which one that was sent is looked for.
    private static let broadcastsMax = 200

    private static let done = [
        "key": "APNs accepts the key. It is in use from now on.",
        "kept": "The key is stored, although APNs has not accepted it. Health shows its state.",
        "app": "The app is in the configuration. Upload its key now.",
        "test-device": "The test device is in the configuration. Send a test to it from a campaign.",
        "removed": "The test device was removed from the configuration.",
    ]

    @Sendable private func show(_ request: PageRequest) async throws -> Response { try await page(request) }

    /// Returns the page, with a form that was refused and what was typed into it.
    func page(_ request: PageRequest, _ refusal: SetupRefusal? = nil) async throws -> Response {
        let steps = try await steps(for: try request.caller, refusal)
        let open = steps.count { !$0.isDone }
        let page = SetupPage(
            steps: steps,
            verdict: open == 0 ? "Everything is set up." : "\(steps.count - open) of \(steps.count) steps are done.",
            colour: open == 0 ? "finished" : "paused",
            done: refusal == nil ? request.query("done").flatMap { Self.done[$0] } : nil)
        return try request.page(
            .setup, title: "Setup", page, status: .init(code: refusal.map { $0.problem?.status ?? 422 } ?? 200))
    }

    private func steps(for caller: Caller, _ refusal: SetupRefusal?) async throws -> [SetupPage.Step] {
        // A store whose devices take long to count has some: a small one is counted while the page waits.
        let count = try await cases.deviceCounts.latest()?.counts.filter { caller.sees($0.topic) }
            .reduce(0) { $0 + $1.count }
        let hasDevices = count != 0
        let segments = try await SegmentAccess(cases, caller).all()
        let campaigns = try await cases.files.campaigns(now: cases.now).filter { caller.sees($0.topic ?? "") }
        let broadcasts = try await cases.found(
            RunSearch(RunFilter(), topic: caller.topic, kind: .alert), at: .newest, limit: Self.broadcastsMax
        ).runs
        let hasSent = broadcasts.contains { $0.counts.accepted > 0 }
        let mayWrite = cases.configuration().http.editing && caller.role.may(.edit)
        var upload = SetupPage.Step(
            "Devices", isDone: hasDevices,
            done: count.map { "\($0.counted("device")) registered." } ?? "The devices are being counted.",
            open: "Let the app’s backend register devices, or import a file of tokens.",
            link: .init(
                address: hasDevices ? "/devices" : "/guide/SegmentsAndImports",
                label: hasDevices ? "Devices" : "What the file contains"))
        if caller.role.may(.setup) {
            upload.uploadMax = "\(DeviceUploads.bytesMax >> 20) MB"
            upload.problem = refusal?.part == .devices ? refusal?.problem?.detail : nil
        }
        return [
            await credentials(caller, refusal), upload,
            .init(
                "Segment", isDone: !segments.isEmpty, done: "\(segments.count.counted("segment")) defined.",
                open: "Name a group of devices, such as the fans of a show.",
                link: .init(address: "/segments", label: "Segments")),
            testDevices(caller, refusal),
            .init(
                "Campaign", isDone: !campaigns.isEmpty, done: "\(campaigns.count.counted("campaign")) written.",
                open: "Choose a campaign to start from, and write its message.",
                link: .init(
                    address: campaigns.isEmpty && mayWrite ? "/new" : "/campaigns",
                    label: campaigns.isEmpty && mayWrite ? "New campaign" : "Campaigns")),
            .init(
                "First broadcast", isDone: hasSent, done: "Sent. Its page shows what became of it.",
                open: "Open the campaign, fill in its values, send a test, plan it, and send it.",
                link: .init(
                    address: broadcasts.isEmpty ? "/campaigns" : "/",
                    label: broadcasts.isEmpty ? "Campaigns" : "Broadcasts")),
        ]
    }

    /// Returns whether the caller may change the configuration, which belongs to all apps.
    private func mayConfigure(_ caller: Caller) -> Bool {
        caller.role.may(.setup) && caller.topic == nil && cases.setup != nil
    }

    // MARK: Apps and keys

    /// The step of the apps and their keys. The checks of Health are up to a minute old, so that they count only for
    /// apps with a certificate.
    private func credentials(_ caller: Caller, _ refusal: SetupRefusal?) async -> SetupPage.Step {
        let topics = cases.configuration().apps.map(\.topic).filter(caller.sees)
        let keys = (cases.setup?.keyPlaces() ?? []).filter { caller.sees($0.topic) }
        let found = keys.isEmpty ? await cases.installation?.latest() ?? [] : []
        let wrong = found.first { $0.check == .credential && $0.state == .wrong }?.message
        let missing = keys.first { !$0.exists }.map { "Upload the key of \($0.topic)." }
        let problem = missing ?? (keys.lazy.compactMap(\.fault).first ?? wrong).map(\.onPage)
        let isDone = !topics.isEmpty && problem == nil
        let open =
            topics.isEmpty
            ? mayConfigure(caller) ? "Add the app, then upload its key." : "Ask an admin of all apps to add the app."
            : problem ?? ""
        var step = SetupPage.Step(
            "App and key", isDone: isDone, done: "\(topics.joined(separator: ", ")), with a key that works here.",
            open: open, link: .init(address: "/health", label: "Health"))
        guard mayConfigure(caller) else { return step }
        step.keys = keys.map { SetupPage.Key($0, refusal) }
        step.newApp = SetupPage.NewApp(
            refusal, obstacle: cases.setup?.obstacle, isOpen: topics.isEmpty || refusal?.part == .app)
        if refusal?.part == .key || refusal?.part == .app { step.problem = refusal?.problem?.detail }
        return step
    }

    @Sendable private func uploadKey(_ request: PageRequest) async throws -> Response {
        let (caller, setup) = try configuring(request, "keys")
        var bytes: [UInt8] = []
        var fields: [String: String] = [:]
        do {
            let received = UploadedBytes()
            let form = try await request.formWithFile(
                bytesMax: ManageSetup.keyBytesMax, tooLarge: "this file is too large for a key; choose AuthKey_….p8"
            ) { received.add($0) }
            (bytes, fields) = (received.bytes, form.fields)
            guard form.fileName != nil, !bytes.isEmpty else {
                throw Failure(.invalidData, "choose the key file, AuthKey_….p8")
            }
            let upload = try await setup.upload(
                bytes, to: fields["key", default: ""], keeps: fields["keep"] == "on", by: caller.actor, now: cases.now)
            guard upload.isWritten else {
                return try await page(request, SetupRefusal(part: .key, fields: fields, answers: upload.answers))
            }
            return PageRequest.seeOther("/setup?done=\(upload.isAccepted ? "key" : "kept")")
        } catch {
            return try await refused(request, .key, error, fields)
        }
    }

    @Sendable private func addApp(_ request: PageRequest) async throws -> Response {
        let (caller, setup) = try configuring(request, "apps")
        let fields = try await request.form()
        do {
            let environment = try fields["environment", default: ""].nonEmpty.map {
                try PushEnvironment(rawValue: $0).orThrow(Failure(.invalidData, "choose an environment from the list"))
            }
            let text = { (name: String) in fields[name, default: ""].filter { !$0.isWhitespace } }
            try await setup.addApp(
                topic: text("topic"), teamID: text("team"), keyID: text("id"), environment: environment,
                by: caller.actor, now: cases.now)
            return PageRequest.seeOther("/setup?done=app")
        } catch {
            return try await refused(request, .app, error, fields)
        }
    }

    // MARK: Test devices

    private func testDevices(_ caller: Caller, _ refusal: SetupRefusal?) -> SetupPage.Step {
        let configuration = cases.configuration()
        var step = SetupPage.Step(
            "Test device", isDone: configuration.testDevices != nil || !cases.testDeviceNames.isEmpty,
            done: "Tests can go to a device that the configuration names.",
            open: "Give your own phone a name, to send tests to it.",
            link: .init(address: "/guide/BeforeYouSend", label: "How to test"))
        guard mayConfigure(caller) else { return step }
        let obstacle =
            configuration.testDevices.map {
                "Tests go to the devices of the segment \($0), which the configuration names."
            }
            ?? cases.setup?.obstacle
        let typed = refusal?.part == .testDevice ? refusal?.fields ?? [:] : [:]
        let devices = configuration.namedTestDevices.sorted { $0.key < $1.key }.map {
            SetupPage.TestDevices.Device(name: $0.key, installation: $0.value, mayRemove: obstacle == nil)
        }
        step.testDevices = SetupPage.TestDevices(
            devices: devices, hasDevices: !devices.isEmpty, obstacle: obstacle, mayAdd: obstacle == nil,
            name: typed["name", default: ""], device: typed["device", default: ""])
        step.problem = refusal?.part == .testDevice ? refusal?.problem?.detail : nil
        return step
    }

    @Sendable private func addTestDevice(_ request: PageRequest) async throws -> Response {
        let (caller, setup) = try configuring(request, "test devices")
        let fields = try await request.form()
        do {
            let name = fields["name", default: ""].onOneLine
            guard !name.isEmpty else { throw Failure(.invalidData, "give the device a name, such as Anna’s phone") }
            guard cases.configuration().namedTestDevices[name] == nil else {
                throw Failure(.invalidData, "a test device is already named \(name); give another name")
            }
            let text = fields["device", default: ""].onOneLine
            guard !text.isEmpty else { throw Failure(.invalidData, "give the device’s installation id or user id") }
            let found = try await cases.devices.found(text, sees: caller.sees)
            let installations = found.compactMap(\.installationId)
            guard let installation = installations.first else {
                throw Failure(.invalidData, "this device has no installation id, which tests need")
            }
            guard Set(installations).count == 1 else {
                throw Failure(
                    .invalidData,
                    "\(text) has several devices; choose one by its installation id: "
                        + installations.prefix(5).joined(separator: ", "))
            }
            try await setup.addTestDevice(name, installation: installation, by: caller.actor, now: cases.now)
            return PageRequest.seeOther("/setup?done=test-device")
        } catch {
            return try await refused(request, .testDevice, error, fields)
        }
    }

    @Sendable private func removeTestDevice(_ request: PageRequest) async throws -> Response {
        let (caller, setup) = try configuring(request, "test devices")
        let fields = try await request.form()
        do {
            let name = fields["name", default: ""]
            guard cases.configuration().namedTestDevices[name] != nil else {
                throw Failure(.notFound, "no test device has this name")
            }
            try await setup.removeTestDevice(name, by: caller.actor, now: cases.now)
            return PageRequest.seeOther("/setup?done=removed")
        } catch {
            return try await refused(request, .testDevice, error)
        }
    }

    // MARK: Refusals

    private func configuring(_ request: PageRequest, _ what: String) throws -> (Caller, ManageSetup) {
        let caller = try request.caller
        try caller.requireAllApps(for: what)
        let setup = try cases.setup.orThrow(
            Problem(409, "refused", "Refused", "this server cannot change its configuration; ask the operator"))
        return (caller, setup)
    }

    /// Returns the page with the refused form. Errors of the server itself are thrown.
    func refused(
        _ request: PageRequest, _ part: SetupRefusal.Part, _ error: any Error, _ fields: [String: String] = [:]
    ) async throws -> Response {
        let problem = try Problem.refusal(error, for: request.caller)
        return try await page(request, SetupRefusal(part: part, problem: problem, fields: fields))
    }
}

extension SetupPage.Key {
    fileprivate init(_ place: KeyPlace, _ refusal: SetupRefusal?) {
        let isRefused = refusal?.part == .key && refusal?.fields["key"] == place.id
        self.init(
            id: place.id, topic: place.topic,
            environments: place.environments.map(\.rawValue).joined(separator: " and "),
            teamID: place.teamID, keyID: place.keyID, exists: place.exists, obstacle: place.obstacle,
            answers: isRefused ? refusal?.answers ?? [] : [],
            offersKeeping: isRefused && refusal?.answers.isEmpty == false)
    }
}

extension SetupPage.NewApp {
    fileprivate init(_ refusal: SetupRefusal?, obstacle: String?, isOpen: Bool) {
        let fields = refusal?.part == .app ? refusal?.fields ?? [:] : [:]
        let chosen = fields["environment", default: ""]
        self.init(
            topic: fields["topic", default: ""], teamID: fields["team", default: ""], keyID: fields["id", default: ""],
            environments: [
                ("", "Production and sandbox"), ("production", "Production only"), ("sandbox", "Sandbox only"),
            ]
            .map { .init(value: $0.0, label: $0.1, isChosen: $0.0 == chosen) },
            obstacle: obstacle, isOpen: isOpen)
    }
}

/// The bytes of a small uploaded file.
private final class UploadedBytes {
    private(set) var bytes: [UInt8] = []

    func add(_ piece: ArraySlice<UInt8>) { bytes += piece }
}

extension String {
    fileprivate var nonEmpty: String? { isEmpty ? nil : self }
}
