import Foundation

/// The values that `doctor` needs from the unit `fanfare.service` and its drop-ins.
package struct InstalledUnit {
    /// The folders in systemd's order of precedence.
    package static let folders = [
        "/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
    ]
    package static let name = "fanfare.service"

    package private(set) var user = "root"
    package private(set) var credentials: [String: String] = [:]
    package private(set) var stateDirectory = "fanfare"
    /// The path after `--config` in the unit's command.
    package private(set) var configuration: String?

    /// Reads the unit. Returns `nil` if none of the folders contains it.
    package static func read(folders: [String]) -> InstalledUnit? {
        let texts = folders.map { "\($0)/\(name)" }.compactMap { try? String(contentsOfFile: $0, encoding: .utf8) }
        guard let text = texts.first else { return nil }
        var unit = InstalledUnit()
        unit.take(text)
        for folder in folders.reversed().map({ "\($0)/\(name).d" }) {
            for file in ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
            where file.hasSuffix(".conf") {
                if let text = try? String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8) { unit.take(text) }
            }
        }
        return unit
    }

    private mutating func take(_ text: String) {
        for line in text.split(separator: "\n") {
            guard let sign = line.firstIndex(of: "="), !line.hasPrefix("#"), !line.hasPrefix(";") else { continue }
            let value = line[line.index(after: sign)...].trimmingCharacters(in: .whitespaces)
            switch line[..<sign].trimmingCharacters(in: .whitespaces) {
            case "User": user = value
            case "StateDirectory": stateDirectory = value
            case "ExecStart":
                let tokens = value.split(separator: " ").map(String.init)
                guard let option = tokens.firstIndex(of: "--config"), option + 1 < tokens.count else { continue }
                configuration = tokens[option + 1]
            // An empty value removes all earlier ones.
            case "LoadCredential" where value.isEmpty: credentials = [:]
            case "LoadCredential":
                let parts = value.split(separator: ":", maxSplits: 1).map(String.init)
                if parts.count == 2 { credentials[parts[0]] = parts[1] }
            default: break
            }
        }
    }
}
