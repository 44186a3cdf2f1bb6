import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import APNs

/// What a journal says after its writer ended, whenever that was.
@Suite struct `Push journal` {
    private static let answers = [
        PushResponse(status: 200), PushResponse(status: 503, reason: .serviceUnavailable),
        PushResponse(status: 410, reason: .unregistered, timestamp: 1_700_000_000_123),
        PushResponse(status: 429, reason: .tooManyProviderTokenUpdates), PushResponse(status: 502),
        PushResponse(status: 403, reason: .badEnvironmentKeyIdInToken),
        PushResponse(status: 400, reason: .other("Something nobody has heard of yet")),
    ]

    /// As many words as fit, of any answer.
    private static func kept(_ answer: PushResponse) -> PushResponse {
        var answer = answer
        answer.reason = answer.reason.map { PushReason(String($0.description.prefix(30))) }
        return answer
    }

    @Test(arguments: answers) func `an answer is read as it was given`(answer: PushResponse) throws {
        let entries = JournalEntries(words: MemoryWords(entries: 3))
        entries.format(3)
        entries.enter(1, lease: 7, device: 42, localeIndex: 3)
        entries.started(1)
        entries.answered(1, answer)
        let found = try #require(try entries.read(1))
        #expect(found.lease == 7 && found.device == 42)
        #expect(found.entry == JournalEntry(state: .answered(Self.kept(answer)), localeIndex: 3))
        #expect(try entries.read(0) == nil && entries.read(2) == nil)
    }

    @Test func `a pause that an answer asks for is kept to its moment`() throws {
        let entries = JournalEntries(words: MemoryWords(entries: 1))
        entries.format(1)
        entries.enter(0, lease: 7, device: 42, localeIndex: nil)
        entries.started(0)
        let before = Int64(time(nil)) * 1000
        entries.answered(0, PushResponse(status: 503, reason: .shutdown, retryAfter: .seconds(600)))
        let after = Int64(time(nil)) * 1000
        guard case .answered(let answer) = try #require(try entries.read(0)).entry.state,
            case .moment(let moment) = try #require(answer.retryAfter)
        else { return #expect(Bool(false), "not answered") }
        #expect(moment >= before + 600_000 && moment <= after + 600_000)
        #expect(answer.status == 503 && answer.reason == .shutdown && answer.timestamp == nil)
    }

    /// The process ends before the first, the second ... store of a push's whole life, on an entry that was used
    /// before.
    @Test(arguments: answers) func `between any two stores an entry is as before or as after`(
        answer: PushResponse
    ) throws {
        let steps: [(JournalEntries<MemoryWords>) -> Void] = [
            { $0.enter(0, lease: 8, device: 43, localeIndex: nil) }, { $0.started(0) }, { $0.returned(0) },
            { $0.started(0) }, { $0.answered(0, answer) }, { $0.free(0) },
        ]
        let states: [JournalEntry.State?] = [
            nil, .queued, .started, .queued, .started, .answered(Self.kept(answer)), nil,
        ]
        var crashes = 0
        for storesLeft in 0... {
            let words = MemoryWords(entries: 1)
            let entries = JournalEntries(words: words)
            entries.format(1)
            entries.enter(0, lease: 7, device: 42, localeIndex: 9)
            entries.answered(0, PushResponse(status: 410, reason: .expiredToken, timestamp: 5))
            entries.free(0)
            words.storesLeft = storesLeft
            var done = 0
            for step in steps {
                step(entries)
                if words.storesLeft < 0 { break }
                done += 1
            }
            let found = try entries.read(0)
            if let found { #expect(found.lease == 8 && found.device == 43 && found.entry.localeIndex == nil) }
            let isEither =
                found?.entry.state == states[done] || done < steps.count && found?.entry.state == states[done + 1]
            #expect(isEither, "after \(storesLeft) stores: \(String(describing: found))")
            if done == steps.count { break }
            crashes += 1
        }
        #expect(crashes >= 10)
    }

    @Test func `a word of nobody's is damage`() throws {
        for (word, value) in [(0, 0), (0, UInt64.max), (1, 99), (2, 41), (0, 2)] as [(Int, UInt64)] {
            let words = MemoryWords(entries: 1)
            let entries = JournalEntries(words: words)
            entries.format(1)
            entries.enter(0, lease: 7, device: 42, localeIndex: nil)
            entries.started(0)
            words.store(value, at: word)
            #expect(throws: JournalDamage.self) { try entries.read(0) }
        }
    }

    private static let identity = PushJournal.Identity(boot: "a-boot", store: PushID(high: 1, low: 2), sender: 17)

    @Test func `a segment's pushes are found by lease and device, and those freed are not`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.file("17.journal")
        let journal = try PushJournal(path: path, identity: Self.identity)
        let first = try journal.segment(entries: 100)
        let second = try journal.segment(entries: 100)
        let one = first.enterAll([(5, 1), (6, nil)], lease: 3)
        let two = second.enterAll([(5, nil), (9, nil), (10, nil)], lease: 4)
        second.started(two[0])
        second.answered(two[1], PushResponse(status: 200))
        second.free([two[2]])
        first.started(one[1])
        first.returned(one[1])
        let evidence = try JournalEvidence.read(path: path, expecting: Self.identity)
        #expect(
            evidence.entries == [
                3: [
                    5: JournalEntry(state: .queued, localeIndex: 1), 6: JournalEntry(state: .queued),
                ],
                4: [
                    5: JournalEntry(state: .started), 9: JournalEntry(state: .answered(PushResponse(status: 200))),
                ],
            ])
        first.free(one)
        second.free([two[0], two[1]])
        #expect(try JournalEvidence.read(path: path, expecting: Self.identity).entries.isEmpty)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test func `a segment given back is used again, one with open entries is not`() throws {
        let folder = try TemporaryDirectory()
        let journal = try PushJournal(path: folder.file("j"), identity: Self.identity)
        let first = try journal.segment(entries: 64)
        journal.release(first)
        #expect(try journal.segment(entries: 64) === first)
        let open = first.enterAll([(1, nil)], lease: 1)
        journal.release(first)
        let other = try journal.segment(entries: 64)
        #expect(other !== first)
        #expect(
            try JournalEvidence.read(path: folder.file("j"), expecting: Self.identity).entries == [
                1: [1: JournalEntry(state: .queued)]
            ])
        first.free(open)
    }

    @Test(arguments: [
        (PushJournal.Identity(boot: "b-boot", store: PushID(high: 1, low: 2), sender: 17), JournalDistrust.otherBoot),
        (PushJournal.Identity(boot: "a-boot", store: PushID(high: 1, low: 3), sender: 17), .foreign),
        (PushJournal.Identity(boot: "a-boot", store: PushID(high: 1, low: 2), sender: 18), .foreign),
    ])
    func `a journal of another boot, store or sender proves nothing`(
        expected: PushJournal.Identity, distrust: JournalDistrust
    ) throws {
        let folder = try TemporaryDirectory()
        let journal = try PushJournal(path: folder.file("j"), identity: Self.identity)
        _ = try journal.segment(entries: 64)
        #expect(throws: distrust) { try JournalEvidence.read(path: folder.file("j"), expecting: expected) }
    }

    @Test func `a journal that is gone, cut off or overwritten proves nothing`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.file("j")
        let read = { try JournalEvidence.read(path: path, expecting: Self.identity) }
        #expect(throws: JournalDistrust.missing) { try read() }
        let journal = try PushJournal(path: path, identity: Self.identity)
        _ = try journal.segment(entries: 64).enterAll([(1, nil)], lease: 1)
        let whole = try Data(contentsOf: URL(filePath: path))
        for damage in [
            whole.prefix(100), whole.prefix(whole.count - 1000), Data(count: whole.count),
            whole.prefix(4096) + Data(count: whole.count - 4096), Data(),
        ] {
            try damage.write(to: URL(filePath: path))
            let error = #expect(throws: JournalDistrust.self) { try read() }
            guard case .damaged = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }

    /// Any one bit of the head or of an entry in use.
    @Test func `no flipped bit turns what was started into what was not`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.file("j")
        let journal = try PushJournal(path: path, identity: Self.identity)
        let segment = try journal.segment(entries: 64)
        let entries = segment.enterAll([(1, nil)], lease: 1)
        segment.started(entries[0])
        let whole = try Data(contentsOf: URL(filePath: path))
        let place = 4096 + Int(entries[0]) * 64
        for byte in Array(0..<96) + Array(place..<place + 24) {
            for bit in 0..<8 {
                var flipped = whole
                flipped[byte] ^= 1 << UInt8(bit)
                try flipped.write(to: URL(filePath: path))
                let evidence = try? JournalEvidence.read(path: path, expecting: Self.identity)
                // Either it is not believed, or it says the same, or that there was an answer that is none.
                if let evidence { #expect(evidence.entries[1]?[1]?.state == .started, "byte \(byte) bit \(bit)") }
            }
        }
    }

    @Test func `where there is no room, nothing is begun`() {
        #expect(throws: JournalError.self) { try PushJournal(path: "/dev/full/j", identity: Self.identity) }
        #expect(throws: JournalError.self) {
            try PushJournal(path: "/nowhere/at/all/j", identity: Self.identity)
        }
    }
}

/// Memory that takes so many stores and then no more, as if the process had ended. One thread only.
private final class MemoryWords: JournalWords, @unchecked Sendable {
    private var words: [UInt64]
    var storesLeft = Int.max

    init(entries: Int) { words = [UInt64](repeating: 0, count: entries * 8) }

    func load(_ index: Int) -> UInt64 { words[index] }

    func store(_ word: UInt64, at index: Int) {
        storesLeft -= 1
        if storesLeft >= 0 { words[index] = word }
    }
}

extension JournalSegment {
    fileprivate func enterAll(_ pushes: [(Int64, Int?)], lease: Int64) -> [Int32] {
        enter(pushes.count, lease: lease) { pushes[$0] }
    }
}
