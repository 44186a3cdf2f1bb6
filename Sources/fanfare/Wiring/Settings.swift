import ArgumentParser
import Campaigns
import Foundation
import Model
import Senders
import Sending
import Store

/// The `--config` option, with access to the configuration and the store.
struct Settings: ParsableArguments {
    @Option(
        name: .long,
        help: "The configuration file (default: $FANFARE_CONFIG, ./fanfare.yaml, /etc/fanfare/fanfare.yaml).",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    /// Returns the settings of a command line that the shell completes.
    static func completing(_ arguments: [String]) -> Settings {
        var settings = Settings()
        settings.config = arguments.firstIndex(of: "--config").flatMap { index in
            arguments.indices.contains(index + 1) ? arguments[index + 1] : nil
        }
        return settings
    }

    var source: ConfigurationSource {
        ConfigurationSource(named: config, environment: ProcessInfo.processInfo.environment)
    }

    /// Returns the configuration if it exists and is valid. Prints nothing otherwise.
    func configurationIfAny() -> Configuration? { source.readIfRight() }

    /// Reads and checks the configuration. Warnings go to standard error, except advice, which `fanfare doctor` and the
    /// Health page show.
    func configuration() throws -> Configuration {
        let (configuration, warnings) = try source.read()
        for warning in warnings where !warning.isAdvice { Console.note(warning.description) }
        return configuration
    }

    /// Opens the configured store for this process.
    func session(_ access: StoreAccess = .writing) async throws -> Session {
        try await session(configuration(), access)
    }

    /// Calls `body` with the configured store, for a dry run. If there is no store, prints a note and uses an empty
    /// store in a temporary folder, which is deleted afterwards.
    func withTrialSession<Value>(_ body: (Session) async throws -> Value) async throws -> Value {
        var configuration = try configuration()
        do {
            return try await body(try await Session(configuration, .writing))
        } catch StoreError.noStore(let path, _) {
            Console.note(
                "there is no store at \(path) (named by \(source.storeNamedBy)): the counts are for an empty store")
        } catch let error as StoreError {
            throw named(error)
        }
        let folder = FileManager.default.temporaryDirectory.appending(path: "fanfare-dry-run-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        configuration.store = folder.appending(path: "store.sqlite").path
        return try await body(try await Session(configuration, .making))
    }

    /// Opens the store of a configuration that was already read. An error about a missing store names the setting that
    /// it comes from.
    func session(_ configuration: Configuration, _ access: StoreAccess = .writing) async throws -> Session {
        do {
            return try await Session(configuration, access)
        } catch let error as StoreError {
            throw named(error)
        }
    }

    private func named(_ error: StoreError) -> any Error {
        switch error {
        // systemd creates this folder for the service's user.
        case .noFolder(let path) where (path as NSString).deletingLastPathComponent == StateFolder.ofService:
            Failure(.configuration, "there is no store at \(path) yet; run: systemctl start fanfare")
        case .noStore, .noFolder, .notAFile:
            Failure(.configuration, "\(error) (named by \(source.storeNamedBy))")
        default: error
        }
    }
}

/// The context of a command: the configuration, the opened store and its senders, the actor, and the time.
struct Session: Sendable {
    let configuration: Configuration
    let opened: OpenedStore
    private let access: StoreAccess
    let actor: Actor
    /// The store's time, which all its senders share.
    let clock: WallClock
    let now: Timestamp
    /// The use cases, the same for commands, pages and the API.
    let useCases: UseCases

    init(_ configuration: Configuration, _ access: StoreAccess) async throws {
        self.configuration = configuration
        self.access = access
        opened = try await StoreOpening.open(configuration.store, access)
        actor = ThisProcess.actor
        clock = opened.store.storeTime.map(WallClock.following) ?? .system
        now = clock.now()
        useCases = UseCases(store: opened.store, senders: opened.senders, clock: clock) { configuration }
        if access == .reading, let move = opened.store.departed {
            Console.note("note: \(move.refusal(at: opened.store.path)); the output shows the old store's state")
        }
    }

    var store: any AllRoles { opened.store }
    var senders: SenderFolder { opened.senders }
    var runs: FollowRuns { useCases.runs }

    /// Registers this process as a sender, until it exits. Throws if other processes could not see that it is alive.
    func registration() throws -> SenderRegistration { try OwnRegistration.register(senders, store).registration }

    /// Returns the stops that this process obeys immediately.
    func stops() throws -> StopWatch { try OwnRegistration.register(senders, store).stops }

    /// Returns the journals of this process and of others.
    func journals() throws -> SenderJournals { try OwnRegistration.register(senders, store).journals }

    /// Returns the run that a person named. First recovers and reports the deliveries in flight of dead senders. If the
    /// store is open for reading, only reports them.
    func run(_ text: String) async throws -> Run {
        try await recoverAbandoned()
        return try await useCases.run(text)
    }

    func recoverAbandoned() async throws {
        guard access != .reading else {
            for left in try await runs.leftInFlight() { Console.note(left.summary) }
            return
        }
        for found in try await runs.recoverAbandoned() { Console.note(found.summary) }
    }
}

extension RunLookup {
    static let help: ArgumentHelp = "The run's number, a campaign's name for its latest run, or campaign/occurrence."
}
