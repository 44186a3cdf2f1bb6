import Logging

/// Drops two messages of the server library about its own shutdown: the server was already closed, or the shutdown
/// cancelled a connection. Neither is an error for the operator.
struct ServerLogHandler: LogHandler {
    private static let ofItsEnd = ["Server shutdown error: ", "Waiting on child channel: CancellationError"]

    private var inner: any LogHandler

    init(_ inner: any LogHandler) { self.inner = inner }

    var metadata: Logger.Metadata {
        get { inner.metadata }
        set { inner.metadata = newValue }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { inner.metadataProvider }
        set { inner.metadataProvider = newValue }
    }

    var logLevel: Logger.Level {
        get { inner.logLevel }
        set { inner.logLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { inner[metadataKey: key] }
        set { inner[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        let message = event.message.description
        guard !Self.ofItsEnd.contains(where: message.hasPrefix) else { return }
        inner.log(event: event)
    }
}
