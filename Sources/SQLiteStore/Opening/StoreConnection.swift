import GRDB

/// How connections to the store are set up.
enum StoreConnection {
    static func configuration(
        readOnly: Bool, log: LogLimits = LogLimits()
    ) -> Configuration {
        var configuration = Configuration()
        configuration.readonly = readOnly
        configuration.label = "store"
        configuration.foreignKeysEnabled = true
        configuration.maximumReaderCount = StoreLimits.readersMax
        configuration.busyMode = .timeout(StoreLimits.busyTimeoutSeconds)
        // Reopening a reader would lose its cache and its compiled statements.
        configuration.persistentReadOnlyConnections = true
        // The connections keep their configuration, and with it the keeper.
        let keeper = LogKeeper(log)
        configuration.prepareDatabase { db in
            let cacheKiB =
                db.configuration.readonly ? StoreLimits.readerCacheKiB : StoreLimits.writerCacheKiB
            try db.execute(sql: "PRAGMA cache_size = -\(cacheKiB)")
            guard !db.configuration.readonly else { return }
            keeper.attach(to: db)
            try db.execute(sql: "PRAGMA journal_size_limit = \(StoreLimits.walKeptBytes)")
        }
        return configuration
    }
}
