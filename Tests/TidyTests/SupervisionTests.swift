import Foundation
import Testing

/// What the daemon is made of: every task of it is supervised, and none waits for a lock of its own process.
@Suite(.timeLimit(.minutes(10))) struct `Supervision` {
    private static let folders = [
        "Sources/Daemon/Service", "Sources/Daemon/Webhook", "Sources/Daemon/Feed", "Sources/fanfare/Serve",
    ]

    /// Where the daemon's tasks are put together.
    private static let files = ["Scheduler.swift", "ScheduledStarts.swift", "ServeCommand.swift", "Operations.swift"]

    /// The daemon and its HTTP side as services of the process, which supervise their own parts.
    private static let services = ["try await operations.run()", "try await daemon.run()"]

    private static func texts(of folder: String) throws -> [(name: String, text: String)] {
        let found = FileManager.default.enumerator(
            at: Tidiness.root.appending(path: folder), includingPropertiesForKeys: nil)
        let files = (found?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
        try #require(!files.isEmpty)
        return try files.map { ($0.lastPathComponent, try String(contentsOf: $0, encoding: .utf8)) }
    }

    /// What stands in the braces that open first behind each place where `start` matches.
    private static func blocks(after start: Regex<Substring>, in text: String) -> [Substring] {
        text.matches(of: start).compactMap { match in
            let rest = text[match.range.upperBound...]
            guard let open = rest.firstIndex(of: "{") else { return nil }
            var depth = 0
            for index in rest.indices[open...] {
                if rest[index] == "{" { depth += 1 }
                if rest[index] == "}" { depth -= 1 }
                if depth == 0 { return rest[open...index] }
            }
            return nil
        }
    }

    /// Whether the function is there, and keeps a part at work.
    private static func supervises(_ function: String, in text: String) -> Bool {
        guard let start = try? Regex<Substring>("func \(function)\\b", as: Substring.self) else { return false }
        return blocks(after: start, in: text).contains { $0.contains("supervisor.keep(") }
    }

    /// Tests that wait for processes would hold the threads that all tests share.
    @Test(arguments: ["Tests/EndToEndTests", "Tests/CrashTests"])
    func `suites that start programs have threads of their own`(folder: String) throws {
        let suites = try Self.texts(of: folder).flatMap { file in
            file.text.matches(of: /@Suite\(\s*(\S*)/).map { (file: file.name, trait: String($0.output.1)) }
        }
        #expect(suites.count >= 8)
        #expect(suites.filter { !$0.trait.hasPrefix(".ownThread") }.map(\.file) == [])
    }

    @Test func `the process ends by one function, and its threads block signals by one`() throws {
        let sources = try Self.texts(of: "Sources")
        let exits = sources.filter { $0.text.contains("exit(") && $0.text.contains(/\b_?exit\(-?\w+[^:]*\)/) }
        #expect(exits.map(\.name) == ["ThisProcess.swift"])
        #expect(sources.filter { $0.text.contains(/sigfillset|pthread_sigmask/) }.map(\.name) == [])
        #expect(sources.filter { $0.text.contains("fanfare_begin_thread(") }.count >= 3)
    }

    @Test func `every task of the daemon that can fail is supervised`() throws {
        let sources = try Self.folders.flatMap { try Self.texts(of: $0) }
        var tasks = 0
        for (name, text) in sources where Self.files.contains(name) {
            for task in Self.blocks(after: /addTask/, in: text) where task.contains("try") {
                tasks += 1
                let calls = task.matches(of: /(\w+)\(/).map { String($0.1) }
                let isSupervised =
                    task.contains("supervisor.keep(") || task.contains("(supervisor)")
                    || Self.services.contains { task.contains($0) }
                    || calls.contains { call in sources.contains { Self.supervises(call, in: $0.text) } }
                #expect(isSupervised, "\(name): \(task)")
            }
        }
        #expect(tasks >= 8, "the daemon has other files")
    }

    @Test func `every part of the daemon is at work somewhere`() throws {
        let sources = try Self.folders.flatMap { try Self.texts(of: $0) }
        let supervisor = try #require(sources.first { $0.name == "Supervisor.swift" })
        let parts = try #require(Self.blocks(after: /enum DaemonPart/, in: supervisor.text).first)
            .matches(of: /case (\w+)/).map { String($0.1) }
        #expect(parts.count >= 14)
        for part in parts {
            let kept = try Regex("keep\\(\\s*\\.\(part)\\b")
            #expect(sources.contains { $0.text.contains(kept) }, "\(part)")
        }
    }

    /// Such a wait can never end where this process holds the lock.
    @Test func `no lock is waited for in the kernel`() throws {
        for (name, text) in try Self.texts(of: "Sources") where text.contains("LOCK_") || text.contains("SETLKW") {
            for line in text.split(separator: "\n") where !line.drop(while: { $0 == " " }).hasPrefix("//") {
                let isWaiting = line.contains(/LOCK_EX|LOCK_SH/) && !line.contains("LOCK_NB") || line.contains("SETLKW")
                #expect(!isWaiting, "\(name): \(line)")
            }
        }
    }
}
