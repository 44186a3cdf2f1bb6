package import Model

/// What became of deliveries. Reads only; each answer comes from one snapshot.
package protocol OutcomeReader: Sendable {
    /// The account alone, from the run's row.
    func summary(run: Int64) async throws -> DeliveryCounts

    /// Everything recorded about a run, from one snapshot: from the summary kept with it once nothing is left to do, until
    /// then counted from its deliveries.
    func report(_ run: Int64) async throws -> Report

    /// The same where it does not have to be counted; nil before the summary is kept.
    func keptReport(_ run: Int64) async throws -> Report?

    /// Recounts the rows and leases of a run and compares them with its account and its summary; where the rows were
    /// pruned, the summary stands for them.
    func check(_ run: Int64) async throws -> SumCheck

    /// What became of a run over time, from its first delivery on; it stays when its outcomes are pruned. Cheap: a row for
    /// each 10 s in which something happened.
    func timeline(_ run: Int64) async throws -> Timeline

    /// Who of a run that follows each device's clock starts when, as it was frozen: in order of time, most deliveries first.
    /// Empty for others, and where the outcomes were pruned. Reads all deliveries of the run.
    func waves(_ run: Int64) async throws -> [WaveShare]

    /// A page of the deliveries of a run in order of device, see ``DeliveryFilter``. Reads ``DeliveryFilter/rowsMax`` rows
    /// and those of the page at most, however large the run: where what is asked for is rarer than that, a page has fewer
    /// than `limit`, or none, and still a cursor. ``StoreError/outcomesPruned(run:at:)`` when only their summary is left.
    ///
    /// - Parameter device: the cursor of the page before, 0 for the first.
    func deliveries(
        of run: Int64, _ filter: DeliveryFilter, after device: Int64, limit: Int
    ) async throws -> DeliveryPage

    /// Whom a run reached or may have reached: accepted, unknown, and whose answer was lost at any attempt. Reads all
    /// deliveries of the run.
    func reached(by run: Int64) async throws -> ReachedDevices

    /// Hands out the deliveries of a run in order of device, in batches, from one snapshot. Returns how many.
    /// ``StoreError/outcomesPruned(run:at:)`` when only their summary is left.
    func outcomes(
        run: Int64, batch: @escaping @Sendable ([OutcomeRow]) throws -> Void
    ) async throws -> Int

    /// What the runs did about one device, newest first.
    func history(ofDevice device: Int64, limit: Int) async throws -> [DeviceDelivery]

    /// What happened to one device, from one snapshot; nil when there is no such device.
    ///
    /// - Parameter runsMax: the latest runs are told, so many that had the device and so many that left it out.
    func story(ofDevice device: Int64, runsMax: Int) async throws -> DeviceStory?
}

extension OutcomeReader {
    /// With the 500 latest runs of each kind.
    package func story(ofDevice device: Int64) async throws -> DeviceStory? {
        try await story(ofDevice: device, runsMax: 500)
    }
}

/// How many a run reached.
package struct ReachedDevices: Hashable, Sendable {
    package var all: Int
    /// Of these, the devices that are not in the store any more.
    package var gone: Int
    /// Of those that are, such as are in the production environment.
    package var production: Int

    package init(all: Int, gone: Int, production: Int) {
        self.all = all
        self.gone = gone
        self.production = production
    }

    /// `PRODUCTION: 18,812 devices, sandbox: 3 devices`.
    package var environmentWords: String {
        [(PushEnvironment.production, production), (.sandbox, all - gone - production)].filter { $0.1 > 0 }
            .map { $0.words(devices: $1) }.joined(separator: ", ")
    }
}
