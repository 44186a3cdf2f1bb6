package import APNs
import Platform
package import Store

/// The journals of the senders of one store.
package struct SenderJournals: Sendable {
    /// The journal of this process, which records started requests and their responses. `nil` if the process keeps no
    /// journal. After a crash, every delivery that it had leased is then in doubt.
    package var own: PushJournal?
    /// Returns what the journal of a dead sender proves, by the sender's name.
    package var evidence: @Sendable (_ owner: String) -> Result<JournalEvidence, JournalDistrust>

    package init(
        own: PushJournal?, evidence: @escaping @Sendable (_ owner: String) -> Result<JournalEvidence, JournalDistrust>
    ) {
        self.own = own
        self.evidence = evidence
    }

    package static let none = SenderJournals(own: nil) { _ in .failure(.missing) }
}

extension SenderFolder {
    /// Returns the journals of the senders that used this folder.
    ///
    /// - Parameter own: the journal of this process.
    package func journals(of store: any DeliveryQueue, own: PushJournal? = nil) -> SenderJournals {
        let space = PushID(high: store.namespace.high, low: store.namespace.low)
        return SenderJournals(own: own) { owner in
            guard let name = SenderName(parsing: owner), let path = journalPath(ofOwner: owner) else {
                return .failure(.missing)
            }
            // A sender that is only unresponsive may still write to its journal.
            guard path == own?.path || liveness(of: owner) == .gone else { return .failure(.missing) }
            return Result { () throws(JournalDistrust) in
                try JournalEvidence.read(path: path, expecting: .current(store: space, sender: name.number))
            }
        }
    }
}
