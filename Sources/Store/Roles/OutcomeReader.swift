package import Model

/// The outcomes of deliveries. This role only reads; each result comes from one snapshot.
package protocol OutcomeReader: Sendable {
    /// Returns the run's counts from its row.
    func summary(run: Int64) async throws -> DeliveryCounts

    /// Returns everything that is recorded about a run, from one snapshot. Once the run has nothing left to do, the
    /// report comes from its stored summary. Until then it is counted from the deliveries.
    func report(_ run: Int64) async throws -> Report

    /// Returns the same report if it need not be counted; `nil` before the summary is stored.
    func keptReport(_ run: Int64) async throws -> Report?

    /// Recounts the rows and leases of a run, and compares them with its counts and its summary. If the rows were
    /// pruned, the summary is used instead.
    func check(_ run: Int64) async throws -> SumCheck

    /// Returns the outcomes of a run over time, from its first delivery on. The timeline stays when the outcomes are
    /// pruned. Cheap: it reads one row for each 10 s in which something happened.
    func timeline(_ run: Int64) async throws -> Timeline

    /// Returns the waves of a run that follows each device's clock, as they were frozen: in order of time, most
    /// deliveries first. The list is empty for other runs, and if the outcomes were pruned. Reads all deliveries of the
    /// run.
    func waves(_ run: Int64) async throws -> [WaveShare]

    /// Returns a page of the deliveries of a run in order of device, see ``DeliveryFilter``. Reads at most
    /// ``DeliveryFilter/rowsMax`` rows and those of the page, however large the run. If matching rows are rarer, a page
    /// has fewer entries than `limit`, or none, and still a cursor. Throws ``StoreError/outcomesPruned(run:at:)`` if
    /// only the summary is left.
    ///
    /// - Parameter device: the cursor of the previous page, 0 for the first page.
    func deliveries(
        of run: Int64, _ filter: DeliveryFilter, after device: Int64, limit: Int
    ) async throws -> DeliveryPage

    /// Returns the devices that a run reached or may have reached: accepted, unknown, and those whose response was lost
    /// at any attempt. Reads all deliveries of the run.
    func reached(by run: Int64) async throws -> ReachedDevices

    /// Hands out the deliveries of a run in order of device, in batches, from one snapshot. Returns how many. Throws
    /// ``StoreError/outcomesPruned(run:at:)`` if only the summary is left.
    func outcomes(
        run: Int64, batch: @escaping @Sendable ([OutcomeRow]) throws -> Void
    ) async throws -> Int

    /// Returns the deliveries to one device, those of the newest run first.
    func history(ofDevice device: Int64, limit: Int) async throws -> [DeviceDelivery]

    /// Returns the history of one device, from one snapshot; `nil` if there is no such device.
    ///
    /// - Parameter runsMax: the maximum number of runs that included the device, and also of runs that left it out.
    ///   The latest runs are returned.
    func history(ofDevice device: Int64, runsMax: Int) async throws -> DeviceHistory?
}

extension OutcomeReader {
    /// Returns the history with the 500 latest runs of each kind.
    package func history(ofDevice device: Int64) async throws -> DeviceHistory? {
        try await history(ofDevice: device, runsMax: 500)
    }
}

/// The number of devices that a run reached.
package struct ReachedDevices: Hashable, Sendable {
    package var all: Int
    /// The number of these devices that are no longer in the store.
    package var gone: Int
    /// The number of the stored ones that are in the production environment.
    package var production: Int

    package init(all: Int, gone: Int, production: Int) {
        self.all = all
        self.gone = gone
        self.production = production
    }

    /// The number of these devices that are in the store.
    package var stored: Int { all - gone }

    /// `PRODUCTION: 18,812 devices, sandbox: 3 devices`.
    package var environmentSummary: String {
        [(PushEnvironment.production, production), (.sandbox, stored - production)].filter { $0.1 > 0 }
            .map { $0.summary(devices: $1) }.joined(separator: ", ")
    }
}
