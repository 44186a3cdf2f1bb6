import Campaigns
import Hummingbird
import Model

/// The operations for devices. The backend of an app registers and removes them; people find and explain them.
struct DeviceOperations: Sendable {
    let cases: UseCases

    private static let topic = Operation.Parameter.path(
        "topic", "The topic of its app, `com.example.app`, with a suffix if the token's push type has one.")
    private static let installation = Operation.Parameter.path(
        "installation", "The installation's id, as the app created it.")
    private static let user = Operation.Parameter.path("user", "The user's id, as devices were registered with it.")
    private static let device = Operation.Parameter.path("device", "The number of a device.", .integer)
    private static let answerModes = ["all", "rejected"]
    private static let secrets = ["new"]

    var all: [Operation] { [register, registerMany, remove, removeUser, find, counts, explain] }

    private var register: Operation {
        Operation(
            method: .put, path: "/devices/{topic}/{installation}", id: "registerDevice", subject: "Devices",
            about:
                "Registers a device, or updates its data, by the rules of `fanfare devices import`: fields "
                + "that are left out stay unchanged. Responds when the device is stored.",
            permission: .register,
            parameters: [
                Self.topic, Self.installation,
                .query(
                    "secret",
                    "`new`: the response contains a secret with which the installation may report its own events. The "
                        + "earlier secret is no longer valid.", allowed: Self.secrets),
            ],
            body: .json(DeviceRegistrationBody.self),
            answers: [
                .init(.ok, "The device was already registered; its current data.", .json(RegistrationResult.self)),
                .init(.created, "New.", .json(RegistrationResult.self)),
            ],
            problems: [.conflict, .contentTooLarge, .unprocessableContent, .serviceUnavailable], handle: register)
    }

    private var registerMany: Operation {
        Operation(
            method: .post, path: "/devices", id: "registerDevices", subject: "Devices",
            about:
                "Registers many devices, one JSON object of at most 64 KiB per line, and returns a result per line as "
                + "it reads: a line with a result is stored or rejected. Bad lines do not stop the rest. Read results "
                + "while you send, or request only the rejected ones. The last line has the status `done` and the "
                + "counts; if it is missing, the stream broke off, and lines without a result may be sent again.",
            permission: .register,
            parameters: [
                .query(
                    "answers", "`rejected`: only results of lines that were not stored (default: `all`).",
                    allowed: Self.answerModes)
            ],
            body: .jsonLines(DeviceRegistrationBody.self),
            answers: [.init(.ok, "The result of each line.", .jsonLines(RegistrationLineResult.self))],
            problems: [.unprocessableContent], handle: registerMany)
    }

    private var remove: Operation {
        Operation(
            method: .delete, path: "/devices/{topic}/{installation}", id: "removeDevice", subject: "Devices",
            about:
                "Removes a device. If its pushes still count for a silent budget or a frequency cap, it keeps a row with "
                + "its token, its installation id and no other personal data, so that registering it again does not "
                + "reset them. The daemon deletes that row in a night after they no longer count, at most 31 days later.",
            permission: .register, parameters: [Self.topic, Self.installation],
            answers: [.init(.ok, "What was removed.", .json(DeviceRemovalResult.self))],
            problems: [.notFound, .serviceUnavailable], handle: remove)
    }

    private var removeUser: Operation {
        Operation(
            method: .delete, path: "/users/{user}/devices", id: "removeDevicesOfUser", subject: "Devices",
            about:
                "Removes all devices of a user, as `removeDevice` does. The token sees the devices of its own topics only.",
            permission: .register, parameters: [Self.user],
            answers: [.init(.ok, "What was removed.", .json(ListPage<DeviceRemovalResult>.self))],
            problems: [.notFound, .serviceUnavailable], handle: removeUser)
    }

    private var counts: Operation {
        Operation(
            method: .get, path: "/devices/counts", id: "countDevices", subject: "Devices",
            about:
                "How many devices there are, by topic, environment and status. Large numbers are counted at intervals; "
                + "`counted_at` gives the time.",
            permission: .read, answers: [.init(.ok, "The counts, with their time.", .json(DeviceCountsResult.self))],
            handle: counts)
    }

    private var find: Operation {
        Operation(
            method: .get, path: "/devices", id: "findDevices", subject: "Devices",
            about: "The devices that match a text, at most 20; an old token finds the device that had it.",
            permission: .read,
            parameters: [
                .required("find", "An installation's id, a user's id, or the last 8 or more characters of a token."),
                .format,
            ],
            answers: [.init(.ok, "The devices found.", .json(ListPage<DeviceResult>.self), orTable: true)],
            problems: [.notFound, .unprocessableContent], handle: find)
    }

    private var explain: Operation {
        Operation(
            method: .get, path: "/devices/{device}/explanation", id: "explainDevice", subject: "Devices",
            about:
                "The history of a device by run, and the outcome of a push sent now, as `fanfare explain --json` "
                + "has it.",
            permission: .read, parameters: [Self.device],
            answers: [.init(.ok, "Its story.", .json(ExplanationResult.self))], problems: [.notFound], handle: explain)
    }

    @Sendable private func register(_ request: APIRequest) async throws -> Response {
        let topic = request.path("topic")
        guard request.caller.sees(topic) else { throw Self.foreign(topic, request.caller) }
        try request.requireType("application/json")
        let body = try await request.collected(bytesMax: APIRequest.lineBytesMax)
        let registered = try await cases.registering.register(
            Array(body.readableBytesView), topic: topic, installation: request.path("installation"))
        var result = RegistrationResult(registered.result)
        if try request.word("secret", among: Self.secrets) != nil {
            result.secret = try await cases.installationSecrets.renew(ofDevice: result.device.device)
        }
        return try .json(result, registered.isNew ? .created : .ok)
    }

    private static func foreign(_ topic: String, _ caller: Caller) -> Problem {
        .forbidden("\(caller.name) is valid for \(caller.topic ?? "nothing") and its suffixes, not for \(topic)")
    }

    @Sendable private func remove(_ request: APIRequest) async throws -> Response {
        let (topic, installation) = (request.path("topic"), request.path("installation"))
        guard request.caller.sees(topic) else { throw Self.foreign(topic, request.caller) }
        return try .json(
            try await cases.devices.remove(
                installation: installation, topic: topic, by: request.caller.actor, now: cases.now))
    }

    @Sendable private func removeUser(_ request: APIRequest) async throws -> Response {
        let removed = try await cases.devices.remove(
            named: request.path("user"), as: [.user], by: request.caller.actor, now: cases.now,
            sees: request.caller.sees)
        return try .json(ListPage(items: removed))
    }

    @Sendable private func counts(_ request: APIRequest) async throws -> Response {
        var result = try await cases.deviceCounts.awaited()
        result.counts.removeAll { !request.caller.sees($0.topic) }
        return try .json(result)
    }

    @Sendable private func registerMany(_ request: APIRequest) async throws -> Response {
        try request.requireType("application/x-ndjson")
        let isBrief = try request.word("answers", among: Self.answerModes) == "rejected"
        let stream = RegistrationStream(cases.registering, request, isBrief: isBrief)
        return .jsonLines { writer in try await stream.run(&writer) }
    }

    @Sendable private func find(_ request: APIRequest) async throws -> Response {
        guard let text = request.text("find"), !text.isEmpty else {
            throw Problem.invalid(
                parameter: "find", "name a device: find=INSTALLATION, a user's id, or the last 8 characters of a token")
        }
        return try request.list(try await cases.devices.found(text, sees: request.caller.sees), next: nil)
    }

    @Sendable private func explain(_ request: APIRequest) async throws -> Response {
        let number = try request.number("device", of: "device")
        let explained = try await cases.explaining.explain(number, now: cases.now)
        try request.caller.requireTopic(explained.result.device.topic, orNotFound: "no device \(number)")
        return try .json(explained.result)
    }
}

/// Registers the devices of one request in batches. A batch contains the lines that have arrived, and is committed
/// before the response reports them.
struct RegistrationStream: Sendable {
    private let registering: RegisterDevices
    private let request: APIRequest
    private let isBrief: Bool

    /// - Parameter isBrief: whether the response reports only rejected lines.
    init(_ registering: RegisterDevices, _ request: APIRequest, isBrief: Bool) {
        self.registering = registering
        self.request = request
        self.isBrief = isBrief
    }

    func run(_ writer: inout any ResponseBodyWriter) async throws {
        var counts = RegistrationCountsResult()
        let inbox = BodyInbox()
        async let _ = inbox.fill(from: request.request.body)
        defer { inbox.close() }
        let result: Result<Void, any Error>
        do {
            try await answer(inbox, &counts, &writer)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        try await registering.record(counts, by: request.caller.actor)
        try result.get()
        try await writer.write(Self.bytes([.done(counts)]))
    }

    private func answer(
        _ inbox: BodyInbox, _ counts: inout RegistrationCountsResult, _ writer: inout any ResponseBodyWriter
    ) async throws {
        var lines = DeviceLines()
        var isEnded = false
        while !isEnded {
            let piece: [UInt8]?
            do {
                piece = try await inbox.nextPiece(briefly: !lines.isEmpty)
            } catch {
                // The body broke off. The complete lines that have arrived are stored.
                _ = try? await store(&lines, &counts)
                throw error
            }
            if let piece {
                isEnded = piece.isEmpty
                if isEnded { lines.finish() } else { lines.append(piece) }
            }
            while lines.gather() { try await write(store(&lines, &counts), &writer) }
            if piece == nil || isEnded { try await write(store(&lines, &counts), &writer) }
        }
    }

    /// Stores the lines that have arrived. Throws, and stores none, if the caller has lost the rights of the request's
    /// start: a stream may be open for days.
    private func store(
        _ lines: inout DeviceLines, _ counts: inout RegistrationCountsResult
    ) async throws -> [RegistrationLineResult] {
        try await request.requireStill()
        let results = await registering.register(&lines, isAllowed: request.caller.sees)
        for result in results { counts.add(result) }
        return results
    }

    private func write(_ results: [RegistrationLineResult], _ writer: inout any ResponseBodyWriter) async throws {
        let told = isBrief ? results.filter { !$0.isGood } : results
        if !told.isEmpty { try await writer.write(Self.bytes(told)) }
    }

    private static func bytes(_ lines: [RegistrationLineResult]) -> ByteBuffer {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(lines.count * 40)
        for line in lines { line.append(to: &bytes) }
        return ByteBuffer(bytes: bytes)
    }
}
