import CampaignFiles
import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Model

/// The import of a file of devices: upload, preview, progress and result.
struct ImportPages: Sendable {
    let cases: UseCases
    let setup: SetupPages

    /// The interval at which a browser reloads the page of an import in progress.
    private static let reloadSeconds = 2

    var routes: [PageRoute] {
        [
            .post("/setup/devices", .setup, upload).readingTexts, .get("/setup/imports/{id}", .setup, show),
            .post("/setup/imports/{id}", .setup, start), .post("/setup/imports/{id}/discard", .setup, discard),
        ]
    }

    @Sendable private func upload(_ request: PageRequest) async throws -> Response {
        let uploads = cases.uploads
        do {
            let (id, path) = try uploads.makeFile()
            do {
                let file = try FileHandle(forWritingTo: URL(filePath: path))
                let form = try await request.formWithFile(
                    bytesMax: DeviceUploads.bytesMax,
                    tooLarge:
                        "this file is larger than \(DeviceUploads.bytesMax >> 20) MB; ask the operator to import it"
                ) { try file.write(contentsOf: Data($0)) }
                try file.close()
                guard let name = form.fileName else {
                    throw Failure(.invalidData, "choose a file of devices, in CSV or JSON Lines")
                }
                await uploads.take(id, named: String(name.onOneLine.prefix(100)))
                return PageRequest.seeOther("/setup/imports/\(id)")
            } catch {
                uploads.discard(id)
                throw error
            }
        } catch {
            return try await setup.refused(request, .devices, error)
        }
    }

    @Sendable private func show(_ request: PageRequest) async throws -> Response { try page(request) }

    @Sendable private func start(_ request: PageRequest) async throws -> Response {
        let upload = try visible(request)
        do {
            try requireOwn(upload, try request.caller)
            let caller = try request.caller
            try cases.uploads.start(upload.id, by: caller.actor, sees: caller.sees)
            return PageRequest.seeOther("/setup/imports/\(upload.id)")
        } catch {
            return try page(request, try Problem.refusal(error, for: request.caller))
        }
    }

    @Sendable private func discard(_ request: PageRequest) async throws -> Response {
        let upload = try visible(request)
        if case .uploaded = upload.state { cases.uploads.discard(upload.id) }
        return PageRequest.seeOther("/setup")
    }

    /// Returns the upload of the address. An upload has a random number, which only the person who uploaded it knows.
    private func visible(_ request: PageRequest) throws -> DeviceUploads.Upload {
        try cases.uploads.upload(request.path("id")).orThrow(
            Problem.notFound("this file was imported or removed; an uploaded file is kept for an hour"))
    }

    /// Throws if a caller of one app would import devices of another.
    private func requireOwn(_ upload: DeviceUploads.Upload, _ caller: Caller) throws {
        guard let topics = upload.preview?.topics, let own = caller.topic, !topics.allSatisfy(caller.sees) else {
            return
        }
        throw Problem.forbidden(
            "\(caller.name) has access only to \(own), but the file has devices of another app; remove those lines")
    }

    private func page(_ request: PageRequest, _ problem: Problem? = nil) throws -> Response {
        let upload = try visible(request)
        var page = ImportPage(upload)
        page.problem = problem?.detail ?? page.problem
        if problem == nil {
            do {
                try requireOwn(upload, try request.caller)
            } catch let refusal as Problem {
                page.problem = refusal.detail
                page.importLabel = nil
            }
        }
        var headers: HTTPFields = [:]
        if page.isRunning, let name = HTTPField.Name("Refresh") { headers[name] = "\(Self.reloadSeconds)" }
        return try request.page(
            .setupImport, title: "Import devices", page, status: .init(code: problem?.status ?? 200), headers: headers)
    }
}

/// The page of one uploaded file.
struct ImportPage: Sendable {
    struct Row: Sendable {
        var token: String
        var app: String
        var environment: String
        var installation: String
        var user: String
        var locale: String
        var zone: String
    }

    struct Fault: Sendable {
        var line: String
        var reason: String
    }

    var fileName: String
    var address: String
    var problem: String?
    /// Whether the file was read, and is not imported yet.
    var isPreview = false
    var columns = ""
    /// The columns that are left out. `nil` if there are none.
    var unknown: String?
    var rows: [Row] = []
    var hasRows = false
    /// The number of lines with an error, such as `3 lines`. `nil` if there are none.
    var rejected: String?
    var faults: [Fault] = []
    /// `Import these 3 devices`. `nil` if the file cannot be imported.
    var importLabel: String?
    var isRunning = false
    /// The number of devices read so far.
    var progress = ""
    /// The result of the finished import. `nil` before.
    var result: String?
}

extension ImportPage {
    fileprivate init(_ upload: DeviceUploads.Upload) {
        fileName = upload.name
        address = "/setup/imports/\(upload.id)"
        problem = upload.problem
        switch upload.state {
        case .arriving: break
        case .uploaded:
            guard let preview = upload.preview else { return }
            isPreview = true
            columns = preview.columns.joined(separator: ", ")
            unknown = preview.unknownColumns.isEmpty ? nil : preview.unknownColumns.joined(separator: ", ")
            rows = preview.devices.map(Row.init)
            hasRows = !rows.isEmpty
            rejected = preview.rejected > 0 ? preview.rejected.counted("line") : nil
            faults = preview.faults.map { Fault(line: "\($0.line)", reason: $0.reason) }
            importLabel =
                preview.good > 0
                ? "Import \(preview.good == 1 ? "this" : "these") \(preview.good.counted("device"))" : nil
        case .running(let count):
            isRunning = true
            progress = count.counted("device")
        case .finished(let found):
            result = Self.summary(found)
        case .failed(let message):
            problem = message
        }
    }

    private static func summary(_ result: ImportResult) -> String {
        let parts = [
            (result.inserted, "new"), (result.updated, "changed"), (result.unchanged, "unchanged"),
            (result.tokensReplaced, "with a new token"), (result.merged, "merged with a known device"),
        ]
        let counts = parts.filter { $0.0 > 0 }.map { "\($0.0.grouped) \($0.1)" }.joined(separator: ", ")
        let rejected = result.rejected > 0 ? " \(result.rejected.counted("line")) could not be used." : ""
        return "\(result.sum.counted("device")) imported\(counts.isEmpty ? "" : ": \(counts)").\(rejected)"
    }
}

extension ImportPage.Row {
    fileprivate init(_ device: DeviceRecord) {
        token = device.token.redacted
        app = device.topic
        environment = device.environment.rawValue
        installation = device.installationID ?? ""
        user = device.userID ?? ""
        locale = device.locale ?? ""
        zone = device.timeZone ?? ""
    }
}
