import CampaignFiles
import Foundation
import Model
import TestSupport
import Testing

/// Broken device files in `Fixtures/bad`, each with what an import of it says in a file `.expected` beside it: the
/// error that stops it, or its counts, the values it left out and the rejects file.
struct BadDeviceFileTests {
    static var names: [String] {
        get throws {
            let folder = Files.fixtures.appending(path: "bad")
            return try [".csv", ".jsonl"].flatMap { try Files.paths(in: folder, ending: $0) }.map {
                URL(fileURLWithPath: $0).lastPathComponent
            }
        }
    }

    private func messages(of name: String) throws -> String {
        let path = Files.fixtures.appending(path: "bad/\(name)").path
        let folder = try TemporaryDirectory()
        defer { withExtendedLifetime(folder) {} }
        let rejects = folder.file("rejects.csv")
        do {
            let counts = try DeviceFileReader(path: path, rejectsPath: rejects).forEachBatch(size: 10) { _ in }
            #expect(counts.read == counts.good + counts.rejected)
            let odd = counts.oddValues.map { "left out from line \($1.firstLine), \($1.count): \($0)\n" }.sorted()
            return "\(counts.read) read, \(counts.rejected) rejected\n" + odd.joined()
                + (counts.rejected > 0 ? try Files.text(rejects) : "")
        } catch let error as ImportError {
            return error.description.replacing(path, with: name) + "\n"
        }
    }

    @Test(arguments: try names) func `an import of a broken file says what is written beside it`(name: String) throws {
        let expected = name.prefix { $0 != "." } + ".expected"
        #expect(try messages(of: name) == Files.text(Files.fixtures.appending(path: "bad/\(expected)").path))
    }

    @Test func `there are several`() throws {
        #expect(try Self.names.count >= 8)
    }
}
