package import CampaignFiles
import Foundation
package import Model
import Platform
import Store
import Synchronization

/// Files of devices that people upload on a page: each is kept until it is imported, or for an hour.
///
/// A file lies in the folder of the store, readable for this process's user alone. Its name is a random number, which
/// identifies the upload. At most one import runs at a time, on a thread of its own.
package final class DeviceUploads: Sendable {
    package static let bytesMax = 50 << 20
    private static let keptFor: Duration = .seconds(3600)
    /// The maximum number of uploads that are kept.
    private static let countMax = 20
    private static let devicesShown = 5
    private static let faultsShown = 10

    package enum State: Sendable {
        /// The file is arriving, or is being read for its preview.
        case arriving
        case uploaded
        /// The number of devices read so far.
        case running(Int)
        case finished(ImportResult)
        /// The message of the error.
        case failed(String)
    }

    /// An upload, as a page shows it.
    package struct Upload: Sendable {
        package var id: String
        /// The name of the file on the person's computer.
        package var name: String
        package var state: State
        /// `nil` if the file cannot be read as a list of devices; see ``problem``.
        package var preview: DevicePreview?
        package var problem: String?
        fileprivate var at: Duration
    }

    private let folder: String
    private let store: any DeviceRegistry & AuditLog
    private let clock: WallClock
    private let uploads = Mutex<[String: Upload]>([:])
    /// Reading a file takes all of a processor.
    private let thread = QueueThreads(["import"])

    /// - Parameter folder: the folder for the files. It is created with the first upload.
    init(folder: String, store: any DeviceRegistry & AuditLog, clock: WallClock) {
        self.folder = folder
        self.store = store
        self.clock = clock
    }

    /// Creates an empty file for an upload, and returns its id and path. The caller writes the file, then calls
    /// ``take(_:named:)`` or ``discard(_:)``.
    package func makeFile() throws -> (id: String, path: String) {
        sweep()
        if mkdir(folder, 0o700) != 0, errno != EEXIST {
            throw Failure(.cannotMake, "\(folder) cannot be created (error \(errno)); check the disk")
        }
        let id = Hex.text((0..<16).map { _ in UInt8.random(in: .min ... .max) })
        let hasRoom = uploads.withLock { uploads in
            guard uploads.count < Self.countMax else { return false }
            uploads[id] = Upload(id: id, name: "", state: .arriving, at: clock.uptime())
            return true
        }
        guard hasRoom else {
            throw Failure(
                .tryAgain, "\(Self.countMax) uploaded files wait for their import; import one, or try again in an hour")
        }
        let descriptor = open(path(id), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            uploads.withLock { $0[id] = nil }
            throw Failure(.cannotMake, "\(folder) cannot be written (error \(errno)); check the disk")
        }
        close(descriptor)
        return (id, path(id))
    }

    /// Reads an uploaded file, and keeps its preview.
    package func take(_ id: String, named name: String) async {
        let path = path(id)
        let read = await BlockingThread.run("preview") {
            Result {
                try DeviceFileReader.preview(path: path, devicesMax: Self.devicesShown, faultsMax: Self.faultsShown)
            }
        }
        var upload = Upload(id: id, name: name, state: .uploaded, at: clock.uptime())
        switch read {
        case .success(let preview): upload.preview = preview
        case .failure(let error): upload.problem = Self.message(error, path)
        }
        uploads.withLock { $0[id] = upload }
    }

    package func discard(_ id: String) {
        for path in [path(id), path(id) + Self.rejects] { unlink(path) }
        uploads.withLock { $0[id] = nil }
    }

    /// Returns `nil` if there is no such upload, such as after an hour.
    package func upload(_ id: String) -> Upload? {
        sweep()
        guard let upload = uploads.withLock({ $0[id] }) else { return nil }
        if case .arriving = upload.state { return nil }
        return upload
    }

    /// Starts the import of an upload in the background. ``upload(_:)`` shows its progress.
    ///
    /// - Parameter sees: whether the actor may import devices of a topic. Lines with another topic are rejected.
    package func start(
        _ id: String, by actor: Actor, sees: @escaping @Sendable (_ topic: String) -> Bool
    ) throws {
        let upload = try uploads.withLock { uploads in
            guard let upload = uploads[id], upload.preview != nil, case .uploaded = upload.state else {
                throw Failure(.refused, "this file was imported or removed; upload it again")
            }
            let isBusy = uploads.values.contains { if case .running = $0.state { true } else { false } }
            guard !isBusy else { throw Failure(.refused, "another import is running; wait until it has finished") }
            uploads[id]?.state = .running(0)
            return upload
        }
        Task(executorPreference: thread) { await self.run(upload, actor, sees) }
    }

    /// Deletes the files that are older than an hour, also those of an earlier process.
    package func sweep() {
        let now = clock.uptime()
        let old = uploads.withLock { uploads in
            let old = uploads.values.filter { upload in
                if case .running = upload.state { return false }
                return now - upload.at >= Self.keptFor
            }
            for upload in old { uploads[upload.id] = nil }
            return old
        }
        for upload in old { unlink(path(upload.id)) }
        let known = uploads.withLock { Set($0.keys) }
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
            let path = "\(folder)/\(name)"
            guard let id = name.split(separator: ".").first.map(String.init), !known.contains(id), isOld(path) else {
                continue
            }
            unlink(path)
        }
    }

    // MARK: The import

    private static let rejects = ".rejects"

    private func run(_ upload: Upload, _ actor: Actor, _ sees: @escaping @Sendable (String) -> Bool) async {
        let path = path(upload.id)
        defer { for path in [path, path + Self.rejects] { unlink(path) } }
        let importing = ImportDevices(store: store) { [clock] in clock.now() }
        do {
            var result = try await importing.run(
                path: path, format: nil, rejects: path + Self.rejects, leavesOutUnknown: true, isDryRun: false,
                isAllowed: sees
            ) { set(upload.id, .running($0)) }
            result.rejectsFile = nil
            try await importing.record(
                path: Redaction.beginning(of: upload.name, scalars: 100),
                "\(result.sum.counted("device")) imported, \(result.rejected.counted("line")) rejected", by: actor)
            set(upload.id, .finished(result))
        } catch {
            set(upload.id, .failed(Self.message(error, path)))
        }
    }

    private func set(_ id: String, _ state: State) { uploads.withLock { $0[id]?.state = state } }

    private func path(_ id: String) -> String { "\(folder)/\(id)" }

    /// A file of an upload that has not arrived completely yet is younger.
    private func isOld(_ path: String) -> Bool {
        var facts = stat()
        guard lstat(path, &facts) == 0 else { return false }
        return time(nil) - facts.st_mtim.tv_sec > Int(Self.keptFor.components.seconds)
    }

    /// Returns the message of an error for the person, who does not know the file's path here.
    private static func message(_ error: any Error, _ path: String) -> String {
        let messages = Failure(error)?.messages ?? ["\(error)"]
        return messages.joined(separator: "\n").replacingWord("\(path):", with: "line ")
            .replacing(#/line (\d+):\d+: error: /#) { "line \($0.1): " }.replacingWord(path, with: "the file")
    }
}
