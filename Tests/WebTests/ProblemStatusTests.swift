import Campaigns
import Model
import Store
import Testing

@testable import Web

/// A caller cannot help if the store or its disk fails.
struct ProblemStatusTests {
    private static let path = "/x/fanfare.sqlite"

    @Test(arguments: [
        StoreError.notADatabase(path: path), .notAStore(path: path), .corrupt(path: path, reason: "malformed"),
        .newerVersion(path: path, found: 9, known: 1), .olderVersion(path: path, found: 1, known: 9),
        .unreadableRun(run: 7, reason: "x"), .notStorable(path: path, row: "a", reason: "b"),
        .noStore(path: path, isEmptyFile: true), .notAFile(path: path), .noFolder(path: path),
        .cannotMake(path: path, reason: "x"), .cannotOpen(path: path, reason: "x"), .diskFull(path: path),
        .readOnly(path: path), .readOnlyFileSystem(path: path), .exhausted(path: path, reason: "x"),
        .displaced(path: path), .busy(path: path), .inputOutput(path: path, what: "reading"),
        .changedMeanwhile(path: path), .inUse(path: path, reason: "x"), .unreachable(path: path, reason: "x"),
        .accessRefused(path: path, reason: "x"), .accessWithdrawn(path: path, reason: "x"),
        .outcomeUnknown(path: path, reason: "x"), .failed(path: path, reason: "x"),
    ])
    func `trouble of the store is the server's error, with its reason`(error: StoreError) {
        let problem = Problem(error)
        #expect([500, 503].contains(problem.status) && !problem.detail.isEmpty, "\(problem)")
        #expect(problem.detail == error.description)
    }
}
