package import CampaignFiles
package import Model
package import Store

/// Adds and refreshes devices from a file.
package struct ImportDevices: Sendable {
    private static let batchMax = 20_000

    private let store: any DeviceRegistry & AuditLog
    private let now: @Sendable () -> Timestamp

    package init(store: any DeviceRegistry & AuditLog, now: @escaping @Sendable () -> Timestamp) {
        self.store = store
        self.now = now
    }

    /// Reads the whole file. If the task is cancelled, it stops after a batch, and the same call completes the
    /// import.
    ///
    /// - Parameters:
    ///   - path: CSV or JSON Lines; `-` for standard input.
    ///   - rejects: the file for rejected lines; `nil` for one beside the input file.
    ///   - replacesAttributes: whether the attributes of a line replace all attributes of its device.
    ///   - leavesOutUnknown: whether unknown columns are left out. Otherwise such a file is refused.
    ///   - isDryRun: whether to report the changes without making them.
    ///   - isAllowed: whether the caller may import devices of a topic. Other lines are rejected. `nil` allows all
    ///     topics.
    ///   - progress: receives the number of devices read so far.
    ///   - ordering: receives the number of devices, if final work on them takes time.
    package func run(
        path: String, format: ImportFormat?, rejects: String?, replacesAttributes: Bool = false,
        leavesOutUnknown: Bool = false, isDryRun: Bool, isAllowed: (@Sendable (_ topic: String) -> Bool)? = nil,
        progress: (Int) -> Void, ordering: (Int) -> Void = { _ in }
    ) async throws -> ImportResult {
        let rejectsPath = RejectsPath.path(for: path, named: rejects)
        let reader = DeviceFileReader(
            path: path, format: format, rejectsPath: rejectsPath, replacesAttributes: replacesAttributes,
            leavesOutUnknown: leavesOutUnknown, isAllowed: isAllowed)
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
            // Report the first error. If the import cannot be finished now, the next process that opens the store
            // finishes it.
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

    /// Records a finished import.
    package func record(path: String, _ summary: String, by actor: Actor) async throws {
        try await store.recordEvent(
            kind: .devicesImported, run: nil, actor: actor, detail: "\(path): \(summary)", now: now())
    }
}

/// The result of an import: the stable shape of `devices import --json`. Every line read is counted once.
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
    /// The values that were left out, although their devices were imported; absent if there are none.
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

        /// The values in words, such as `line 17: locale is no language tag; ...`.
        package var summary: String {
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

/// The file for the rejected lines of an import.
package enum RejectsPath {
    package static func path(for file: String, named: String?) -> String {
        named ?? ImportError.rejectsPath(for: file)
    }
}
