import Model
import Store

/// The conclusion about tokens from all responses of a run. It is recorded at the end of the run, and only if the run
/// is healthy.
///
/// A wrong host, a wrong topic or an old import makes every token look dead or wrong. So the store first only records
/// the responses. No device is changed before the run is judged as a whole.
struct TokenConclusion {
    /// The text in the run's history if this check has stopped the run. A person who then resumes the run confirms that
    /// the devices are gone.
    private static let tooManyGone = "too many devices are gone"

    private let store: any SendingStore
    private let run: Int64
    private let counts: [MismatchCount]

    /// Reads all deliveries of the run.
    init(_ run: Run, in store: any SendingStore) async throws {
        self.store = store
        self.run = run.id
        counts = try await store.mismatchCounts(run: run.id)
    }

    /// Returns why a person must check the run before any device is changed. Returns `nil` for a healthy run, and for a
    /// run that a person has resumed after this check stopped it.
    func halt() async throws -> String? {
        let (answered, gone) = (counts.reduce(0) { $0 + $1.all }, counts.reduce(0) { $0 + $1.gone })
        // Nearly every run returns here, without a read of other runs.
        guard gone > 0, answered >= GoneShare.answersMin else { return nil }
        let share = GoneShare(after: try await store.goneBefore(run: run))
        guard share.isExceeded(gone: gone, answered: answered), try await !wasResumed() else { return nil }
        let tolerated = Int((share.tolerated * 100).rounded())
        return
            "\(Self.tooManyGone): \(gone) of \(answered) that responded, but at most \(tolerated) % is usual for this "
            + "campaign; check for an old import or a host in `endpoints` that is not APNs. No device was changed yet: "
            + "`fanfare resume \(run)` marks these devices gone, `fanfare cancel \(run)` keeps them unchanged"
    }

    private func wasResumed() async throws -> Bool {
        try await store.events(run: run).contains {
            $0.kind == EventKind.runPaused.rawValue && $0.detail.contains(Self.tooManyGone)
        }
    }

    /// Marks the devices found gone, and suspends those whose tokens were refused for their environment or topic. If so
    /// many were refused in an environment that the host or the topic must be wrong, suspends none there.
    func write(now: Timestamp) async throws {
        _ = try await store.markGone(run: run, now: now)
        for counts in counts where counts.wrong > 0 && !OutcomePolicy.isMismatch(counts) {
            _ = try await store.suspendMismatched(run: run, counts.environment, now: now)
        }
    }
}
