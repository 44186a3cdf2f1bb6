import ArgumentParser
import Campaigns
import Foundation
import Model
import Senders
import Store

struct StopCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop", abstract: "Stop sending immediately: a run, a campaign or everything.",
        discussion: """
            The command asks for no confirmation. Every process on this machine stops sending within 0.1 s, even while the \
            store accepts no writes or the disk is full. Senders watch a file (--where prints its path); `touch` on it \
            stops everything. If nothing could be stopped, the error begins with NOTHING IS STOPPED. Senders on other \
            machines read the stop from the store. If a store on a server does not record the stop within 15 s, and no \
            sender of this machine can record it later, the error begins with OTHER MACHINES ARE NOT STOPPED, and the \
            exit code is 75. Responses still arriving are recorded, and requests started after \
            the stop are counted.

            A stop of everything, or of a campaign, survives restarts until --lift with a --reason lifts it; the audit \
            log records it. Runs then continue where they were. A run that was stopped on its own waits for `fanfare \
            resume RUN`. If that run does not exist, or the store cannot be reached, --lift removes its stop from the \
            file. A command whose run is not sent because of a stop exits with 76.

            After a wrong push: `fanfare stop CAMPAIGN`, `fanfare cancel RUN`, `fanfare correct RUN`. The stop of a campaign does \
            not block its correction; a stop of everything does.
            """)

    @OptionGroup var settings: Settings

    @Argument(
        help: "A run's number, campaign/occurrence for a run, or a campaign's name for all of its runs.",
        completion: .custom(CampaignNames.completions))
    var target: String?

    @Flag(help: "Everything.") var all = false
    @Flag(help: "Lift the stop of everything, of a campaign, or of a run in the stop file; needs --reason.")
    var lift = false
    @Option(help: "The reason, for the audit log.") var reason: String?
    @Flag(name: .customLong("where"), help: "Print only the path of the file that stops everything.") var showsPath =
        false
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        if showsPath { return }
        guard all == (target == nil) else {
            throw ValidationError(
                all ? "--all stops everything: name no run or campaign" : "name a run or a campaign, or write --all")
        }
        if lift, reason?.contains(where: { !$0.isWhitespace }) != true {
            throw ValidationError("--lift needs a --reason, for the audit log")
        }
    }

    /// The maximum wait for the store. The file has already stopped the senders of this machine, so the store may
    /// record the stop later.
    private static let storePatience: Duration = .seconds(1)
    /// The maximum wait for a store on a server. Only the store tells the other machines, and a first connection may
    /// take 10 s until it goes on to the next host.
    private static let sharedPatience: Duration = .seconds(15)

    func run() async throws {
        let configuration = try settings.configuration()
        if showsPath {
            return Console.print(try await StoreOpening.senders(configuration.store).stopFile.path)
        }
        if lift { return try await liftStop(configuration) }
        // Do not open the store for a scope that is known without it.
        if let scope = knownScope(configuration) {
            let senders: SenderFolder
            do { senders = try await StoreOpening.senders(configuration.store) } catch {
                throw StopSending.nothingIsStopped(error, file: "", fileFault: nil)
            }
            return try await stop(order(scope), senders, configuration)
        }
        // Open for reading only: a store that another process has locked can still be read.
        let session = try await settings.session(configuration, .reading)
        let scope: StopOrder.Scope
        do {
            scope = try await self.scope(session, configuration)
        } catch {
            throw StopSending.nothingIsStopped(error, file: session.senders.stopFile.path, fileFault: nil)
        }
        try await stop(order(scope), session.senders, configuration)
    }

    /// Writes the stop to the file and to the store. Throws only if both fail.
    private func stop(_ order: StopOrder, _ senders: SenderFolder, _ configuration: Configuration) async throws {
        var fault: (any Error)?
        do {
            _ = try StopSending.write(order, to: senders)
        } catch {
            fault = error
        }
        try await report(order, senders, configuration, fault)
    }

    private func order(_ scope: StopOrder.Scope) -> StopOrder {
        StopOrder(scope, by: ThisProcess.actor.name, at: WallClock.system.now(), reason: reason)
    }

    /// Returns the scope, or `nil` if only the store can tell what the target means.
    private func knownScope(_ configuration: Configuration) -> StopOrder.Scope? {
        guard let target else { return .all }
        return Self.scope(ofRun: target) ?? catalogue(configuration).runName(of: target).map { .campaign($0) }
    }

    /// Returns the scope of a run, or `nil` for the name of a campaign.
    private static func scope(ofRun target: String) -> StopOrder.Scope? {
        if let run = Int64(target) { return .run(run) }
        return target.contains("/") ? StopOrder.Scope("run \(target)") : nil
    }

    private func catalogue(_ configuration: Configuration) -> CampaignCatalogue {
        var catalogue = CampaignCatalogue()
        catalogue.refresh(configuration)
        return catalogue
    }

    /// Looks up the target in the store. Returns the scope of one run, or of a campaign that has runs but no file.
    private func scope(_ session: Session, _ configuration: Configuration) async throws -> StopOrder.Scope {
        let run: Run
        do {
            run = try await session.useCases.run(target ?? "")
        } catch let failure as Failure where failure.kind == .notFound {
            let names = catalogue(configuration).names.sorted()
            guard let meant = Suggestion.nearest(to: target ?? "", among: names) else { throw failure }
            throw Failure(.notFound, failure.messages.joined(separator: "; ") + "; did you mean \"\(meant)\"?")
        }
        return run.campaign == target ? .campaign(run.campaign) : .run(run.id)
    }

    private func report(
        _ order: StopOrder, _ senders: SenderFolder, _ configuration: Configuration, _ fault: (any Error)?
    ) async throws {
        let path = senders.stopFile.path
        let isShared = StoreAddress(configuration.store).isURL
        var (inForce, isRecorded) = (order, false)
        var went: StopSending.Went?
        var obstacle: String?
        do {
            let settings = settings
            let patience = isShared ? Self.sharedPatience : Self.storePatience
            let announcement = isShared && fault == nil ? Self.announceWait() : nil
            defer { announcement?.cancel() }
            let recorded = try await Self.within(fault == nil ? patience : nil) {
                let session = try await settings.session(configuration)
                return (try await session.useCases.stopping.record(order, by: session.actor), session)
            }
            announcement?.cancel()
            if let (recordedOrder, session) = recorded {
                (inForce, isRecorded) = (recordedOrder, true)
                went = try await session.useCases.stopping.whatWent(in: recordedOrder)
            } else {
                obstacle = "it has not responded within \(WrittenDuration.text(patience))"
            }
        } catch  where fault == nil && isPassing(error) {
            obstacle = "\(error)"
        } catch  where !isRecorded {
            throw StopSending.nothingIsStopped(error, file: path, fileFault: fault)
        }
        if let fault {
            Console.note(
                "the file \(path) cannot be written: \(fault). The stop is recorded in the store, where senders see it within "
                    + "seconds")
        }
        let isLeft = !isRecorded && isShared && senders.livingSender() == nil
        if let obstacle, !isLeft { notePending(order, path, obstacle, isRecorded: isRecorded) }
        let result = StopResult(inForce, file: senders.stopFile.path, went: went, isRecorded: isRecorded)
        Console.print(json ? try ResultJSON.text(result) : StopText.text(inForce, result))
        if let obstacle, isLeft {
            throw Failure(
                .tryAgain,
                "OTHER MACHINES ARE NOT STOPPED: \(order.scope.summary) is stopped on this machine by \(path), but the "
                    + "store has not recorded the stop (\(obstacle)), and no sender of this machine can record it later. "
                    + "Run this command again, or on each machine that sends")
        }
    }

    private func notePending(_ order: StopOrder, _ path: String, _ why: String, isRecorded: Bool) {
        guard !isRecorded else { return Console.note("the senders' confirmations cannot be read: \(why)") }
        Console.note(
            "\(order.scope.summary) is stopped by \(path); the store has not recorded the stop yet: \(why). "
                + "A sender records the stop when the store accepts writes again; or repeat this command")
    }

    /// Tells a waiting person what is done already.
    private static func announceWait() -> Task<Void, any Error> {
        Task {
            try await Task.sleep(for: storePatience)
            Console.note(
                "this machine is stopped; waiting up to \(WrittenDuration.text(sharedPatience)) for the store to record "
                    + "the stop for other machines")
        }
    }

    /// Returns the result of `body`, or `nil` if the time limit ends first. `body` then continues until this process
    /// exits.
    private static func within<Value: Sendable>(
        _ limit: Duration?, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        let (results, result) = AsyncStream.makeStream(of: Result<Value, any Error>.self)
        Task {
            do { result.yield(.success(try await body())) } catch { result.yield(.failure(error)) }
            result.finish()
        }
        if let limit {
            Task {
                try? await Task.sleep(for: limit)
                result.finish()
            }
        }
        for await found in results { return try found.get() }
        return nil
    }

    /// Returns whether the store may record the stop later.
    private func isPassing(_ error: any Error) -> Bool {
        switch error {
        case let error as StoreError: error.isPassing
        case let failure as Failure: [.unavailable, .tryAgain, .configuration].contains(failure.kind)
        default: false
        }
    }

    private func liftStop(_ configuration: Configuration) async throws {
        if let target, let scope = Self.scope(ofRun: target) { return try await liftStop(scope, configuration) }
        let session = try await settings.session(configuration)
        let scope = target.map { StopOrder.Scope.campaign(catalogue(configuration).runName(of: $0) ?? $0) } ?? .all
        let lifted = try await session.useCases.stopping.lift(scope, reason: reason ?? "", by: session.actor)
        Console.print(json ? try ResultJSON.text(lifted) : StopText.text(scope, lifted))
    }

    /// Removes the stop of one run from the file, even if the store is unavailable or the run does not exist.
    private func liftStop(_ scope: StopOrder.Scope, _ configuration: Configuration) async throws {
        let senders = try await StoreOpening.senders(configuration.store)
        let (actor, reason) = (ThisProcess.actor, reason ?? "")
        guard let (order, result) = try StopSending.lift(ofRun: scope, reason: reason, by: actor, in: senders) else {
            throw Failure(.invalidData, "a run that was stopped on its own continues with `\(scope.remedy)`")
        }
        do {
            let settings = settings
            let isRecorded = try await Self.within(Self.storePatience) {
                let session = try await settings.session(configuration)
                try await session.useCases.stopping.recordLift(order, reason: reason, by: session.actor)
                return true
            }
            if isRecorded == nil {
                Self.noteUnrecorded(scope, "it has not responded within \(WrittenDuration.text(Self.storePatience))")
            }
        } catch {
            Self.noteUnrecorded(scope, "\(error)")
        }
        Console.print(json ? try ResultJSON.text(result) : StopText.text(scope, result))
    }

    private static func noteUnrecorded(_ scope: StopOrder.Scope, _ why: String) {
        Console.note("the store has not recorded that the stop of \(scope.summary) is lifted: \(why)")
    }
}

private enum StopText {
    static func text(_ order: StopOrder, _ result: StopResult) -> String {
        var lines = [order.summary]
        if let runs = result.runs {
            let left = runs.reduce(0) { $0 + $1.startedAfter }
            lines.append(
                runs.isEmpty
                    ? "No process was sending it."
                    : "\(runs.count.counted("run was", "runs were")) being sent; "
                        + "\(left.counted("request was", "requests were")) started after the stop.")
        }
        let unconfirmed = result.unconfirmed ?? []
        if !unconfirmed.isEmpty {
            lines.append(
                "\(unconfirmed.count.counted("sender has", "senders have")) not confirmed the stop:")
            lines += unconfirmed.map { "  \($0.summary)." }
        } else if result.quiet == false {
            lines.append("A sender still waits for responses; nothing new is started.")
        }
        lines.append("To continue, run `\(order.scope.remedy)`.")
        return lines.joined(separator: "\n")
    }

    static func text(_ scope: StopOrder.Scope, _ result: LiftResult) -> String {
        var lines = ["The stop of \(scope.summary), by \(result.stop.by) at \(result.stop.at), is lifted."]
        if scope.isOfOneRun { lines.append("If it is paused, `\(scope.remedy)` continues it.") }
        for order in result.still { lines.append("Still stopped: \(order.scope); `\(order.remedy)` lets it continue.") }
        return lines.joined(separator: "\n")
    }
}
