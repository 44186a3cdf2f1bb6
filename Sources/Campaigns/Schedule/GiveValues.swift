package import Model
package import Store

/// Gives the variables of a campaign their values for one start of its schedule.
///
/// The values are an object of their own and not those of a saved plan: a plan is made to look at it, and looking must
/// change nothing. Only an account that may start runs gives values, because they decide what is sent.
///
/// - The values hold for their occurrence, whatever becomes of the files. The words are those of the files at the
///   start, as at every scheduled start.
/// - The run is created with the values that are stored when its start is due, and keeps them.
/// - Under approvals, a signature covers the values. A later change of the values needs new signatures.
package struct GiveValues: Sendable {
    private let store: any RunLog & OccurrenceValueLog

    package init(store: any RunLog & OccurrenceValueLog) { self.store = store }

    /// One start of a campaign, with its values.
    package struct Start: Sendable {
        package var occurrence: Occurrence
        package var timetable: Timetable
        /// What would be sent, with the values or the defaults.
        package var definition: RunDefinition
        /// `nil` if no values were given.
        package var given: OccurrenceValues?
        /// The variables without a value.
        package var missing: [String]
        /// The run of the start, if it is over.
        package var run: Run?
    }

    /// Returns one start of a campaign.
    ///
    /// - Parameter name: the key of the occurrence; `nil` for the next one.
    package func start(_ source: CampaignSource, named name: String?, now: Timestamp) async throws -> Start {
        let (occurrence, timetable) = try Self.occurrence(of: source.campaign, named: name, now: now)
        let campaign = source.campaign
        let given = try await store.values(campaign: campaign.name, occurrence: occurrence.key)
        let values = campaign.declared(given?.variables ?? [:])
        let definition = try source.definition(with: values, plannedAt: now).planned(for: occurrence)
        return Start(
            occurrence: occurrence, timetable: timetable, definition: definition, given: given,
            missing: campaign.missingValues(in: source.templates, given: values),
            run: try await store.run(campaign: campaign.name, occurrence: occurrence.key))
    }

    /// Returns the next starts of a campaign with their values.
    package func starts(_ source: CampaignSource, atMost count: Int, now: Timestamp) async throws -> [Start] {
        let timetable = source.campaign.schedule.flatMap(Timetable.init)
        var starts: [Start] = []
        for occurrence in timetable?.occurrences(after: now, through: nil, atMost: count) ?? [] {
            starts.append(try await start(source, named: occurrence.key, now: now))
        }
        return starts
    }

    /// Stores the values of one start, in place of its earlier ones. A value that is the file's default is not stored,
    /// so that a later default counts.
    package func give(
        _ typed: [String: String], to name: String?, of source: CampaignSource, by actor: Actor, now: Timestamp
    ) async throws -> Start {
        let campaign = source.campaign
        let (occurrence, _) = try Self.occurrence(of: campaign, named: name, now: now)
        let all = try RunVariables.merged(campaign, with: typed)
        let missing = campaign.missingValues(in: source.templates, given: all)
        guard missing.isEmpty else {
            throw Failure(
                .invalidData, "a start needs all its values: also give a value for \(missing.joined(separator: ", "))")
        }
        guard all.reduce(0, { $0 + $1.value.utf8.count }) <= Self.bytesMax else {
            throw Failure(.invalidData, "the values have more than \(Self.bytesMax.grouped) bytes; shorten them")
        }
        if let run = try await store.run(campaign: campaign.name, occurrence: occurrence.key) {
            throw Self.tooLate(occurrence, "run \(run.id) already exists for it")
        }
        guard now < occurrence.startsAt else { throw Self.tooLate(occurrence, "its start time has passed") }
        let values = OccurrenceValues(
            campaign: campaign.name, occurrence: occurrence.key, startsAt: occurrence.startsAt,
            variables: all.filter { campaign.variables[$0.key] != $0.value }, givenAt: now, givenBy: actor.name,
            giver: actor.identity)
        switch try await store.giveValues(values, by: actor) {
        case .stored: return try await start(source, named: occurrence.key, now: now)
        case .started(let run): throw Self.tooLate(occurrence, "run \(run) already exists for it")
        case .tooMany:
            throw Failure(
                .refused,
                "\(GivenValues.countMax.grouped) starts have values already; remove those that are no longer needed")
        }
    }

    /// Removes the values of one start. Returns `false` if it has none.
    package func remove(
        from name: String, of source: CampaignSource, by actor: Actor, now: Timestamp
    ) async throws -> Bool {
        let (occurrence, _) = try Self.occurrence(of: source.campaign, named: name, now: now)
        guard now < occurrence.startsAt else { throw Self.tooLate(occurrence, "its start time has passed") }
        return try await store.removeValues(
            campaign: source.campaign.name, occurrence: occurrence.key, by: actor, now: now)
    }

    private static let bytesMax = 64 << 10

    private static func tooLate(_ occurrence: Occurrence, _ why: String) -> Failure {
        Failure(
            .refused, "the start \(occurrence.key) keeps the values that it has, because \(why); nothing was changed")
    }

    private static func occurrence(
        of campaign: Campaign, named name: String?, now: Timestamp
    ) throws -> (Occurrence, Timetable) {
        guard let timetable = campaign.schedule.flatMap(Timetable.init) else {
            throw Failure(
                .notFound, "campaign \(campaign.name) has no schedule; give it its values when you start it")
        }
        guard let found = name.map(timetable.occurrence(named:)) ?? timetable.next(after: now) else {
            throw Failure(
                .notFound,
                name.map {
                    "the schedule of \(campaign.name) has no start \($0); `fanfare schedule \(campaign.name)` lists the starts"
                }
                    ?? "the schedule of \(campaign.name) has no further start; set a later time in the schedule")
        }
        return (found, timetable)
    }
}

extension CampaignSource {
    /// The templates that runs use.
    var templates: [Template] { [template] + variantTemplates.values }
}
