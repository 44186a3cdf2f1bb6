import Campaigns
import Daemon
import Dispatch
import Foundation
import Logging
import Model
import SendingScene
import TestSupport
import Testing

/// The files of a daemon whose folder does not answer: the thread that reads them stands still.
@Suite(.timeLimit(.minutes(10))) struct `Files that take their time` {
    private let folder: TemporaryDirectory
    private let queue = DispatchQueue(label: "files that hang")
    private let reloading: Reloading

    init() throws {
        folder = try TemporaryDirectory()
        try folder.write(
            "store: a.sqlite\napps: [{topic: com.example.a, certificate_path: a.pem}]\n", to: "fanfare.yaml")
        for name in ["campaigns", "templates"] {
            try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: false)
        }
        let source = ConfigurationSource(named: folder.file("fanfare.yaml"), environment: [:])
        let configuration = Configuration(
            store: "a.sqlite", campaigns: "\(folder.path)/campaigns", templates: "\(folder.path)/templates")
        reloading = Reloading(
            source: source, configuration: configuration, logger: Logger(label: "test"), queue: queue)
    }

    @Test func `what was read last is there meanwhile, and who is stopped does not wait`() async throws {
        queue.suspend()
        let waiting = [
            Task { _ = try await reloading.snapshot() }, Task { _ = try await reloading.hasChanged() },
            Task { _ = try await reloading.readConfiguration() },
        ]
        #expect(reloading.configuration.store == "a.sqlite")
        #expect(reloading.folders.contains("\(folder.path)/campaigns"))
        for task in waiting {
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        queue.resume()
        #expect(try await reloading.snapshot().problems.isEmpty)
        #expect(try await !reloading.hasChanged())
    }

    @Test func `an address that holds with a restart only is named when it is another one`() async throws {
        let lines = CollectedLines()
        let reloading = Reloading(
            source: ConfigurationSource(named: folder.file("fanfare.yaml"), environment: [:]),
            configuration: reloading.configuration, logger: lines.logger())
        try folder.write(
            "store: a.sqlite\napps: [{topic: com.example.a, certificate_path: a.pem}]\nhttp: {listen: \"127.0.0.1:1\"}\n"
                + "feeds: {proxy: true}\n",
            to: "fanfare.yaml")
        _ = try await reloading.readConfiguration()
        let warnings = lines.all.filter { $0.level == .warning }.compactMap { $0.facts["reason"] }
        for key in ["http.listen", "feeds"] {
            #expect(warnings.contains("\(key) has changed in the file"), "\(lines.all)")
        }
        #expect(warnings.count == 2, "\(warnings)")
    }

    /// A backup by hard links, and a `chown` of all files each night.
    @Test func `a file whose content stays is read again, and its change is not recorded`() async throws {
        try folder.write("campaign: a\n", to: "campaigns/a.yaml")
        let path = folder.file("campaigns/a.yaml")
        let name = FileHash.absolute(path)
        #expect(try await reloading.snapshot().hashes.keys.contains(name))
        #expect(try await reloading.snapshot().hashes.isEmpty)
        #expect(link(path, folder.file("backup")) == 0)
        #expect(try await reloading.hasChanged())
        #expect(try await reloading.snapshot().hashes.isEmpty)
        #expect(try await !reloading.hasChanged())
        try folder.write("campaign: b\n", to: "campaigns/a.yaml")
        let hash = try FileHash.hash(of: path)
        #expect(try await reloading.snapshot().hashes == [name: hash])
        try FileManager.default.removeItem(atPath: path)
        try folder.write("campaign: c\n", to: "campaigns/c.yaml")
        #expect(try await reloading.snapshot().hashes[name] == "removed")
        try folder.write("campaign: b\n", to: "campaigns/a.yaml")
        #expect(try await reloading.snapshot().hashes == [name: hash])
    }

    /// A deployment often makes the path of a folder a symbolic link, and points it to another folder.
    @Test func `a folder that took the place of another one is watched`() async throws {
        for name in ["one", "two"] {
            try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(
                atPath: folder.file("to-\(name)"), withDestinationPath: folder.file(name))
        }
        let folders = [folder.file("to-one"), folder.path]
        // No look without a signal: each element is then due to a change.
        let watch = FolderWatch(lookEvery: .seconds(86_400))
        watch.follow(folders)
        var changes = watch.changes.makeAsyncIterator()
        _ = await changes.next()
        #expect(rename(folder.file("to-two"), folder.file("to-one")) == 0)
        // The exchange itself gives at most four elements, so further ones are those of the new folder.
        for number in 0..<8 {
            _ = await changes.next()
            watch.follow(folders)
            try folder.write("\(number)", to: "two/a.yaml")
        }
    }
}
