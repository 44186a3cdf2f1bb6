import Foundation

/// Where the store, keys, certificates and logs of one benchmark lie.
struct BenchmarkFolder {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "/fanfare-benchmark-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    var store: String { path + "/bench.sqlite" }

    func remove() {
        do { try FileManager.default.removeItem(atPath: path) } catch { Output.show("\(path) is left: \(error)") }
    }
}

enum Output {
    /// At once, also into a file or a pipe.
    static func show(_ text: String) {
        FileHandle.standardOutput.write(Data((text + "\n").utf8))
    }
}

enum Machine {
    static var description: String {
        let date = ISO8601DateFormatter().string(from: Date()).prefix(10)
        let processors = ProcessInfo.processInfo.activeProcessorCount
        let information = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
        let model = information.split(separator: "\n").first { $0.hasPrefix("model name") }?
            .split(separator: ":").last?.trimmingCharacters(in: .whitespaces)
        return "\(date), \(model ?? "unknown processor"), \(processors) processors"
    }
}
