package import APNs
package import Model
package import Store

/// Where and how to send; one per app.
package struct SendingSetup: Sendable {
    /// By environment, as ``endpoints``: each may have a credential of its own.
    package var transports: [PushEnvironment: any Transport]
    /// An environment without one is not sent to.
    package var endpoints: [PushEnvironment: PushEndpoint]
    /// What proves who we are there, as people know it: `key ABC123DEFG of team DEF123GHIJ`.
    package var credentials: [PushEnvironment: String] = [:]
    package var lanesPerEnvironment: Int
    package var silentBudget: Configuration.SilentBudget
    package var frequencyCaps: [FrequencyCap] = []
    /// Kept together with all other senders of the store: the app's, and that of all apps.
    package var paces: [SharedPace] = []
    /// When a run that finishes is no success.
    package var success = Configuration.SuccessLimits()
    /// Deliveries per lease.
    package var leaseMax = 1000
    package var journals = SenderJournals.none
    /// What it obeys at once.
    package var stops = StopWatch()
    /// No request starts when the sender could not tell for so long whether the run is to go on; nil: it need not.
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

    /// With one transport for all environments.
    package init(
        transport: any Transport, endpoints: [PushEnvironment: PushEndpoint], lanesPerEnvironment: Int,
        silentBudget: Configuration.SilentBudget
    ) {
        self.init(
            transports: endpoints.mapValues { _ in transport }, endpoints: endpoints,
            lanesPerEnvironment: lanesPerEnvironment, silentBudget: silentBudget)
    }

    /// To no host: for a run that is only put in order.
    package static func nowhere(_ journals: SenderJournals, _ stops: StopWatch = StopWatch()) -> SendingSetup {
        var sender = SendingSetup(transports: [:], endpoints: [:], lanesPerEnvironment: 1, silentBudget: .init())
        sender.journals = journals
        sender.stops = stops
        return sender
    }

    /// What it starts and hears is written down, and nothing starts while nobody can tell whether its run goes on.
    ///
    /// - Parameter stops: what it obeys at once.
    package func journaling(in journals: SenderJournals, obeying stops: StopWatch = StopWatch()) -> SendingSetup {
        var sender = self
        sender.stops = stops
        sender.journals = journals
        sender.trustWindow = SenderTrust.window
        return sender
    }
}

extension SendingSetup {
    /// Whether a setup failed for a reason that may be over by itself, such as too many open files.
    package static func isPassing(_ error: any Error) -> Bool { (error as? CredentialError)?.isPassing ?? false }
}
