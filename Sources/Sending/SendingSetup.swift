package import APNs
package import Model
package import Senders
package import Store

/// The destination and the parameters of sending. Each app has one setup.
package struct SendingSetup: Sendable {
    /// The transports by environment, as ``endpoints``. Each may have its own credential.
    package var transports: [PushEnvironment: any Transport]
    /// The endpoints by environment. Nothing is sent to an environment without an endpoint.
    package var endpoints: [PushEnvironment: PushEndpoint]
    /// The description of each environment's credential, for a person: `key ABC123DEFG of team DEF123GHIJ`.
    package var credentials: [PushEnvironment: String] = [:]
    package var lanesPerEnvironment: Int
    package var silentBudget: Configuration.SilentBudget
    package var frequencyCaps: [FrequencyCap] = []
    /// The paces shared with all other senders of the store: the app's pace, and the pace of all apps.
    package var paces: [SharedPace] = []
    /// The limits that decide whether a finished run is unsuccessful.
    package var success = Configuration.SuccessLimits()
    /// The maximum number of deliveries per lease.
    package var leaseMax = 1000
    package var journals = SenderJournals.none
    /// The stops that the sender obeys immediately.
    package var stops = StopWatch()
    /// How long requests may start after the store's last confirmation that the run continues. `nil` means without a
    /// limit.
    package var trustWindow: Duration?

    package init(
        transports: [PushEnvironment: any Transport], endpoints: [PushEnvironment: PushEndpoint],
        lanesPerEnvironment: Int, silentBudget: Configuration.SilentBudget
    ) {
        self.transports = transports
        self.endpoints = endpoints
        self.lanesPerEnvironment = lanesPerEnvironment
        self.silentBudget = silentBudget
    }

    /// Creates a setup with one transport for all environments.
    package init(
        transport: any Transport, endpoints: [PushEnvironment: PushEndpoint], lanesPerEnvironment: Int,
        silentBudget: Configuration.SilentBudget
    ) {
        self.init(
            transports: endpoints.mapValues { _ in transport }, endpoints: endpoints,
            lanesPerEnvironment: lanesPerEnvironment, silentBudget: silentBudget)
    }

    /// Returns a setup without hosts, for a run that is only recovered.
    package static func nowhere(_ journals: SenderJournals, _ stops: StopWatch = StopWatch()) -> SendingSetup {
        var sender = SendingSetup(transports: [:], endpoints: [:], lanesPerEnvironment: 1, silentBudget: .init())
        sender.journals = journals
        sender.stops = stops
        return sender
    }

    /// Returns a setup that journals the requests started and their responses. It starts no request later than
    /// `SenderTrust.window` after the last confirmation that the run continues.
    ///
    /// - Parameter stops: the stops that the sender obeys immediately.
    package func journaling(in journals: SenderJournals, obeying stops: StopWatch = StopWatch()) -> SendingSetup {
        var sender = self
        sender.stops = stops
        sender.journals = journals
        sender.trustWindow = SenderTrust.window
        return sender
    }
}

extension SendingSetup {
    /// Returns whether a setup failed for a reason that may pass without action, such as too many open files.
    package static func isPassing(_ error: any Error) -> Bool { (error as? CredentialError)?.isPassing ?? false }
}
