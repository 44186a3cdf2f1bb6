import APNs
import Foundation
import Model
import Campaigns

/// The demo's folder: everything a real installation has, with generated devices and keys.
struct DemoFolder {
    static let teamID = "DEMOTEAM01"
    static let keyID = "DEMOKEY001"
    static let keyFile = "AuthKey_\(keyID).p8"

    let path: String

    /// - Parameter path: an empty or new folder; nil for a new one among the temporary files.
    init(_ path: String?) throws {
        self.path = try path.map(Self.fresh) ?? Self.temporary()
    }

    private static func fresh(_ path: String) throws -> String {
        let files = FileManager.default
        if files.fileExists(atPath: path), try !files.contentsOfDirectory(atPath: path).isEmpty {
            throw Failure(.configuration, "\(path) is not empty; name a new folder with --dir")
        }
        try files.createDirectory(atPath: path, withIntermediateDirectories: true)
        return URL(fileURLWithPath: path).standardizedFileURL.path
    }

    private static func temporary() throws -> String {
        var template = Array("\(NSTemporaryDirectory())/fanfare-demo-XXXXXX".replacing("//", with: "/").utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Failure(.configuration, "cannot make a folder in \(NSTemporaryDirectory()); name one with --dir")
        }
        return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Writes campaigns, templates and the signing key.
    func writeExamples() throws -> String {
        for folder in ["campaigns", "templates"] {
            try FileManager.default.createDirectory(
                atPath: "\(path)/\(folder)", withIntermediateDirectories: true)
        }
        for example in ExampleFiles.all { try write(example.name, example.text) }
        let pem = try SigningKey.generatedPEM()
        try write(Self.keyFile, pem)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(path)/\(Self.keyFile)")
        return pem
    }

    func writeConfiguration(productionPort: Int, sandboxPort: Int, authority: String) throws {
        try write(
            "fanfare.yaml",
            """
            store: fanfare.sqlite
            campaigns: campaigns
            templates: templates
            apps:
              - topic: \(DemoDevices.topic)
                team_id: \(Self.teamID)
                key_id: \(Self.keyID)
                key_path: \(Self.keyFile)
                connections: 2                        # lanes per environment
                silent_budget: {limit: 3, window: 1h}
                endpoints:                            # the simulator, in place of Apple
                  production: 127.0.0.1:\(productionPort)
                  sandbox: 127.0.0.1:\(sandboxPort)
                  trust: \(authority)

            """)
    }

    /// Writes devices.csv, fans.csv and the simulator's registry; returns how many of each trouble were made.
    func writeDevices(count: Int, now: Timestamp) throws -> [(trouble: DemoDevices.Trouble, count: Int)] {
        var devices = DemoDevices(now: now)
        var lines = [DemoDevices.header]
        var fans = ["installation_id"]
        var registry: [String] = []
        var troubles: [DemoDevices.Trouble: Int] = [:]
        for number in 0..<count {
            let device = devices.device(number)
            lines.append(device.line)
            if device.isFan { fans.append(device.installation) }
            if let line = device.registryLine { registry.append(line) }
            if let trouble = device.trouble { troubles[trouble, default: 0] += 1 }
        }
        try write("devices.csv", lines.joined(separator: "\n") + "\n")
        try write("fans.csv", fans.joined(separator: "\n") + "\n")
        try write("registry.jsonl", registry.joined(separator: "\n") + "\n")
        return DemoDevices.Trouble.allCases.map { ($0, troubles[$0, default: 0]) }
    }

    private func write(_ name: String, _ text: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(path)/\(name)"), options: .atomic)
    }
}
