import Foundation
import Testing

/// Which room may know which: the arrows of the house, read from what its files import.
struct ArrowTests {
    private static let root = `Tidiness`.root

    /// What a target may import of our own; `fanfare` wires and may import everything.
    private static let arrows: [String: Set<String>] = [
        "Web": ["Daemon", "Campaigns", "CampaignFiles", "Guide", "Model", "CZlib"],
        "Daemon": [
            "Campaigns", "Sending", "Senders", "Rendering", "Store", "FeedReader", "WebClient", "Model", "Platform",
        ],
        "Campaigns": ["Sending", "Senders", "Rendering", "Store", "CampaignFiles", "Parquet", "Model", "Platform"],
        "Sending": ["Senders", "Rendering", "Store", "APNs", "Model", "Platform"],
        "Senders": ["Store", "APNs", "Model", "Platform"],
        "Rendering": ["Model", "Platform"],
        "Store": ["Model", "Platform"],
        "RelationalStore": ["Store", "Model"],
        "SQLiteStore": ["RelationalStore", "Store", "OutputFiles", "Model", "Platform", "CKernel"],
        "PostgresStore": ["RelationalStore", "Store", "Model", "Platform", "CKernel", "CPostgres"],
        "CampaignFiles": ["OutputFiles", "Model", "Platform"],
        "APNs": ["HTTP2", "Platform", "CCurl", "CKernel", "COpenSSL"],
        "APNsSimulator": ["HTTP2", "Platform", "COpenSSL"],
        "HTTP2": ["Platform", "CKernel", "CNGHTTP2", "COpenSSL"],
        "FeedReader": ["Model"],
        "WebClient": ["CCurl", "CKernel", "COpenSSL", "Model", "Platform"],
        "Systemd": [],
        "Parquet": [],
        "OutputFiles": [],
        "Guide": [],
        "Model": ["Platform"],
        "Platform": ["CKernel", "COpenSSL"],
    ]

    /// Our own targets that a folder's files import, by file.
    private static func imports(under folder: String) throws -> [(file: String, target: String)] {
        let ours = Set(arrows.keys).union([
            "fanfare", "CCurl", "CKernel", "CNGHTTP2", "COpenGuard", "COpenSSL", "CPostgres", "CZlib",
        ])
        let found = FileManager.default.enumerator(at: root.appending(path: folder), includingPropertiesForKeys: nil)
        let files = (found?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
        try #require(!files.isEmpty)
        return try files.flatMap { file in
            try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap { line in
                let words = line.split(separator: " ")
                guard let index = words.firstIndex(of: "import"), index < 2, words.indices.contains(index + 1),
                    ours.contains(String(words[index + 1]))
                else { return nil }
                return (file.lastPathComponent, String(words[index + 1]))
            }
        }
    }

    @Test(arguments: arrows.keys.sorted()) func `a target imports what stands below it and nothing else`(
        target: String
    ) throws {
        let allowed = try #require(Self.arrows[target])
        for entry in try Self.imports(under: "Sources/\(target)") {
            #expect(allowed.contains(entry.target), "\(entry.file) imports \(entry.target)")
        }
    }

    @Test func `every target of Sources has its place among the arrows`() throws {
        let sources = Self.root.appending(path: "Sources").path
        let targets = try FileManager.default.contentsOfDirectory(atPath: sources).filter { !$0.hasPrefix(".") }
        #expect(
            Set(targets)
                == Set(Self.arrows.keys).union([
                    "fanfare", "CCurl", "CKernel", "CNGHTTP2", "COpenGuard", "COpenSSL", "CPostgres", "CVersion",
                    "CZlib", "EmbedTexts",
                ]))
    }

    @Test(arguments: ["StoreContract", "TransportContract"])
    func `a contract knows no adapter`(contract: String) throws {
        let adapters: Set = ["SQLiteStore", "PostgresStore", "HTTP2", "CCurl", "CNGHTTP2", "APNsSimulator"]
        for entry in try Self.imports(under: "Tests/\(contract)") where contract == "StoreContract" {
            #expect(!adapters.contains(entry.target), "\(entry.file) imports \(entry.target)")
        }
    }

    /// The command line translates and wires: it asks use cases, and neither the store nor a file.
    @Test func `fanfare calls no store and reads no file`() throws {
        let words = ["store.", "contentsOfFile", "contents(atPath", "Data(contentsOf"]
        let found = FileManager.default.enumerator(
            at: Self.root.appending(path: "Sources/fanfare"), includingPropertiesForKeys: nil)
        for file in (found?.allObjects ?? []).compactMap({ $0 as? URL }) where file.pathExtension == "swift" {
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                let code = line.drop { $0 == " " }
                guard !code.hasPrefix("//") else { continue }
                // Handing the store on is wiring; so is naming it in a sentence.
                let isCall = code.contains(/(?:session\.|\b)store\.[a-z]\w*\(/)
                let reads = words.dropFirst().contains { code.contains($0) }
                #expect(!isCall && !reads, "\(file.lastPathComponent): \(code)")
            }
        }
    }
}
