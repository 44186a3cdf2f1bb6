package import CampaignFiles
package import Model
package import Store

/// Adds and refreshes devices from a file.
package struct ImportDevices: Sendable {
    private static let batchMax = 20_000

    private let store: any DeviceRegistry & RunLog
    private let now: @Sendable () -> Timestamp

    package init(store: any DeviceRegistry & RunLog, now: @escaping @Sendable () -> Timestamp) {
        self.store = store
        self.now = now
    }

    /// Reads the whole file; cancelled, it stops between two batches, and the same call goes on from there.
    ///
    /// - Parameters:
    ///   - path: CSV or JSON Lines; `-` for standard input.
    ///   - rejects: where bad lines go; nil: beside the file.
    ///   - replacesAttributes: the attributes of a line take the place of all that its device has.
    ///   - isDryRun: says what would change, and changes nothing.
    ///   - progress: told how many devices were read so far.
    ///   - ordering: told how many they are, where what is left to do for them takes its time.
    package func run(
        path: String, format: ImportFormat?, rejects: String?, replacesAttributes: Bool = false, isDryRun: Bool,
        progress: (Int) -> Void, ordering: (Int) -> Void = { _ in }
    ) async throws -> ImportResult {
        let rejectsPath = RejectsPath.path(for: path, named: rejects)
        let reader = DeviceFileReader(
            path: path, format: format, rejectsPath: rejectsPath, replacesAttributes: replacesAttributes)
        var result = ImportResult(dryRun: isDryRun)
        let devices = isDryRun ? nil : try await store.deviceImport()
        let lines: ReadCounts
        do {
            lines = try await reader.forEachBatch(size: Self.batchMax) { records in
                if let devices {
                    result.add(try await devices.register(records, now: now()))
                } else {
                    result.add(try await store.importDevices(records, now: now(), dryRun: true))
                }
                progress(result.sum)
                try Task.checkCancellation()
            }
        } catch {
            // What stopped it is said; a store that cannot be put in order now is by whoever opens it next.
            _ = try? await devices?.finish(now: now())
            throw error
        }
        if await devices?.isPuttingOff == true { ordering(result.sum) }
        if let rest = try await devices?.finish(now: now()) { result.add(rest) }
        result.read = lines.read
        result.rejected = lines.rejected
        result.rejectsFile = lines.rejected > 0 ? rejectsPath : nil
        let odd = lines.oddValues.map { reason, found in
            ImportResult.OddValues(reason: reason, lines: found.count, firstLine: found.firstLine)
        }
        result.oddValues =
            odd.isEmpty ? nil : odd.sorted { ($0.firstLine, $0.reason) < ($1.firstLine, $1.reason) }
        return result
    }

    /// Puts a finished import on record.
    package func record(path: String, _ summary: String, by actor: Actor) async throws {
        try await store.recordEvent(
            kind: .devicesImported, run: nil, actor: actor, detail: "\(path): \(summary)", now: now())
    }
}

/// What an import did: the stable shape of `devices import --json`. Every line read is counted once.
package struct ImportResult: Codable, Hashable, Sendable {
    package var dryRun: Bool
    package var read = 0
    package var inserted = 0
    package var updated = 0
    package var unchanged = 0
    package var tokensReplaced = 0
    package var merged = 0
    package var rejected = 0
    package var rejectsFile: String?
    /// Values that were left out of devices that were kept. Absent: none.
    package var oddValues: [OddValues]?

    /// Values left out for one reason.
    package struct OddValues: Codable, Hashable, Sendable {
        package var reason: String
        package var lines: Int
        package var firstLine: Int

        package init(reason: String, lines: Int, firstLine: Int) {
            self.reason = reason
            self.lines = lines
            self.firstLine = firstLine
        }

        /// `line 17: locale is no language tag; ...`
        package var words: String {
            let others = lines > 1 ? " and \((lines - 1).grouped) more" : ""
            return "line \(firstLine)\(others): \(reason); the value was left out and the device kept"
        }
    }

    package init(dryRun: Bool) {
        self.dryRun = dryRun
    }

    package mutating func add(_ counts: ImportCounts) {
        inserted += counts.inserted
        updated += counts.updated
        unchanged += counts.unchanged
        tokensReplaced += counts.tokensReplaced
        merged += counts.merged
    }

    package var sum: Int { inserted + updated + unchanged + tokensReplaced + merged }
}

/// Where the bad lines of an import go unless somebody names a file.
package enum RejectsPath {
    package static func path(for file: String, named: String?) -> String {
        named ?? ImportError.rejectsPath(for: file)
    }
}
