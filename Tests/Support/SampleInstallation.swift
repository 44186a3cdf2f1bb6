package import Foundation

/// The files of a small installation for one app: a signing key, devices, and the simulator's registry of them.
package struct SampleInstallation: Sendable {
    package static let topic = "com.example.wendercast"
    package static let keyID = "TESTKEY001"
    package static let teamID = "TESTTEAM01"
    /// The columns that `devices.csv` always has.
    private static let columns = "token,environment,topic,installation_id,registered_at"

    package let directory: TemporaryDirectory
    /// The tokens in hexadecimal, by the device's number.
    package let tokens: [String]

    /// Writes `key.p8`, `registry.jsonl` and `devices.csv`.
    ///
    /// - Parameters:
    ///   - key: a signing key as PEM.
    ///   - columns: additional columns, each with the value for all devices.
    ///   - goneSince: returns the time at which a device was uninstalled, in milliseconds since 1970.
    package init(
        devices: Int, key: String, columns: KeyValuePairs<String, String> = [:],
        goneSince: (Int) -> Int64? = { _ in nil }
    ) throws {
        directory = try TemporaryDirectory()
        tokens = (0..<devices).map { number in
            let digits = String(number, radix: 16)
            return String(repeating: "ab", count: 28) + String(repeating: "0", count: 8 - digits.count) + digits
        }
        let keyPath = try directory.write(key, to: "key.p8")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: keyPath)
        try directory.write(
            tokens.enumerated().map { number, token in
                let gone = goneSince(number).map { #","gone_since":\#($0)"# } ?? ""
                return #"{"token":"\#(token)","environment":"production","topic":"\#(Self.topic)"\#(gone)}"# + "\n"
            }.joined(), to: "registry.jsonl")
        let names = columns.map { ",\($0.key)" }.joined()
        let values = columns.map { ",\($0.value)" }.joined()
        let lines = tokens.enumerated().map { number, token in
            "\(token),production,\(Self.topic),install-\(number),2026-01-01T00:00:00Z\(values)\n"
        }
        try directory.write("\(Self.columns)\(names)\n" + lines.joined(), to: "devices.csv")
    }
}

/// The `fanfare` program that was built with the tests.
package enum BuiltProgram {
    /// The program next to the tests, or the one that `TESTED_PROGRAM` names, such as an optimized build.
    package static let url =
        ProcessInfo.processInfo.environment["TESTED_PROGRAM"].map { URL(fileURLWithPath: $0) }
        ?? beside.appending(path: "fanfare")

    /// The library that a tested program may preload (`LD_PRELOAD`). Its source describes its effects.
    package static let killSwitch = beside.appending(path: "libKillSwitch.so").path

    private static let beside = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent()
}
