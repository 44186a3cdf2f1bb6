import CampaignFiles
import Foundation
package import Model
import Store

/// The means of a service whose pages may change its configuration and its keys.
package struct SetupTools: Sendable {
    package var source: ConfigurationSource
    package var environment: [String: String]
    package var probes: DiagnoseInstallation.Probes
    /// Reads the configuration again, and makes changed keys take effect.
    package var reload: @Sendable () async throws -> Void

    package init(
        source: ConfigurationSource, environment: [String: String], probes: DiagnoseInstallation.Probes,
        reload: @escaping @Sendable () async throws -> Void
    ) {
        self.source = source
        self.environment = environment
        self.probes = probes
        self.reload = reload
    }
}

/// Changes the configuration and the keys of an installation, for a person on a page.
///
/// Only the configuration file and the key files that it names are written, each as a whole or not at all. Where this
/// process may not write them, ``obstacle`` and ``KeyPlace/obstacle`` say what the operator must do.
package struct ManageSetup: Sendable {
    let store: any AuditLog
    let tools: SetupTools

    init(store: any AuditLog, tools: SetupTools) {
        self.store = store
        self.tools = tools
    }

    /// The reason why the configuration file cannot be changed here. `nil` if it can.
    package var obstacle: String? {
        guard let path = tools.source.path else {
            return "there is no configuration file; ask the operator to write one"
        }
        let folder = (path as NSString).deletingLastPathComponent
        guard access(path, W_OK) == 0, access(folder.isEmpty ? "." : folder, W_OK) == 0 else {
            return "the service cannot write \(path); ask the operator to make the change"
        }
        return nil
    }

    /// Adds an app to the configuration file.
    ///
    /// - Parameter environment: the only environment of the app's key; `nil` for a key that works in both.
    package func addApp(
        topic: String, teamID: String, keyID: String, environment: PushEnvironment?, by actor: Actor, now: Timestamp
    ) async throws {
        let owner = (written()?.apps ?? []).flatMap { Self.keys(of: $0) }.first {
            $0.keyID == keyID && $0.teamID != teamID
        }
        if let owner {
            throw Failure(
                .refused, "key \(keyID) belongs to team \(owner.teamID) of \(owner.topic); correct the key or the team")
        }
        try await edit { text in
            let word = { (text: String) in YAMLValue.text(text) }
            let path = keyPath(keyID)
            var item: [YAMLText.Edit] = [.init(["topic"], word(topic)), .init(["team_id"], word(teamID))]
            if let environment {
                let keys = ["keys", environment.rawValue]
                item += [.init(keys + ["key_id"], word(keyID)), .init(keys + ["key_path"], word(path))]
            } else {
                item += [.init(["key_id"], word(keyID)), .init(["key_path"], word(path))]
            }
            try text.append(item, to: "apps")
        }
        try await record(.configurationChanged, "app \(topic) added, with key \(keyID)", actor, now)
    }

    /// Names a device for tests in the configuration file, where the operator and the command line find it, too.
    package func addTestDevice(
        _ name: String, installation: String, by actor: Actor, now: Timestamp
    ) async throws {
        try await edit { try $0.apply([.init(["test_devices", name], .text(installation))]) }
        try await record(.configurationChanged, "test device \(name) added: \(installation)", actor, now)
    }

    package func removeTestDevice(_ name: String, by actor: Actor, now: Timestamp) async throws {
        try await edit { try $0.apply([.init(["test_devices", name], nil)]) }
        try await record(.configurationChanged, "test device \(name) removed", actor, now)
    }

    func record(_ kind: EventKind, _ detail: String, _ actor: Actor, _ now: Timestamp) async throws {
        try await store.recordEvent(kind: kind, run: nil, actor: actor, detail: detail, now: now)
    }

    /// Changes the text of the configuration file, if the new text is valid, and reads it again.
    private func edit(_ change: @escaping @Sendable (inout YAMLText) throws -> Void) async throws {
        if let obstacle { throw Failure(.refused, obstacle) }
        let (path, environment) = (tools.source.path ?? "", tools.environment)
        let result = await BlockingThread.run("configuration") {
            Result { try Self.rewrite(path, environment, change) }
        }
        try result.get()
        try await tools.reload()
    }

    private static func rewrite(
        _ path: String, _ environment: [String: String], _ change: (inout YAMLText) throws -> Void
    ) throws {
        // A link stays a link: its target is replaced.
        let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        let entry = try AtomicFile.entry(at: path)
        let (old, faults) = FileText.load(path)
        guard let old else { throw Failure(.configuration, faults) }
        var text = YAMLText(old)
        do {
            try change(&text)
        } catch let fault as YAMLText.Fault {
            throw Failure(
                .refused,
                "\(path) is written in a form that Fanfare cannot change (\(fault.place)); edit the file by hand")
        }
        let (_, diagnostics) = ConfigurationFile.read(text: text.written, path: path, environment: environment)
        let errors = diagnostics.filter { $0.severity == .error }
        guard errors.isEmpty else { throw Failure(.invalidData, errors) }
        guard try AtomicFile.write(text.written, to: path, expecting: entry) == nil else {
            throw Failure(.tryAgain, "\(path) was changed by another person in the meantime; try again")
        }
    }

    /// Returns the path of a new key, relative to the folder of the configuration file.
    private func keyPath(_ keyID: String) -> String {
        let folder = ((tools.source.path ?? "") as NSString).deletingLastPathComponent
        let keys = folder.isEmpty ? "keys" : "\(folder)/keys"
        let name = "AuthKey_\(keyID).p8"
        return access(keys, W_OK | X_OK) == 0 ? "keys/\(name)" : name
    }
}

extension YAMLText.Fault {
    fileprivate var place: String {
        switch self {
        case .unreadable: "it is not valid YAML"
        case .tooMany: "it is too long"
        case .unsuitable(let path): "`\(path)`"
        }
    }
}
