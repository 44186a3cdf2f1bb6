import ArgumentParser
import Campaigns
import Foundation
import Model
import Senders
import Store
import Synchronization

struct MoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Move the whole configured store to PostgreSQL, or back to a file.",
        discussion: """
            Everything is moved: devices, runs with their numbers and outcomes, the silent budget, and the audit log. \
            Both stores are compared row by row before the new store is opened. From then on the old store names the \
            new address, and sends nothing. Put the new address under `store` in the configuration afterwards. First \
            pause the running runs and stop `fanfare serve`; stops in force are moved too. An interrupted move \
            continues when the same command is run again; until it is done neither store can be used.
            Exit codes: 0 moved; 3 the new address already has a store; 65 the copy differs; 75 the store is in \
            use, or the move was stopped.
            """)

    @OptionGroup var settings: Settings
    @Option(help: "The new address: postgres://USER@HOST/DATABASE, or the path of a file that does not exist yet.")
    var to: String?
    @Flag(help: "Abandon an unfinished move: the old store can be used again; remove the new one.")
    var giveUp = false
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard (to == nil) == giveUp else { throw ValidationError("give --to ADDRESS, or --give-up") }
    }

    func run() async throws {
        let session = try await settings.session(.departing)
        let old = session.store
        guard let to else {
            let senders = session.senders
            try await MoveStore.giveUp(old) { senders.liveness(of: $0) == .held }
            return Console.note("\(old.path) can be used again; remove the incomplete store at the new address")
        }
        // Recover the deliveries in flight of dead senders, unless an earlier move forbids writes to the store.
        if old.departed == nil { try await session.recoverAbandoned() }
        let new = try await StoreOpening.open(Self.absolute(to), .arriving, isAlive: { _ in true })
        let stopFile = session.senders.stopFile
        let move = MoveStore(
            from: old, to: new, mover: try session.registration().name, stopsByFile: { stopFile.read() },
            now: { Timestamp(Date()) })
        let printer = MoveProgressPrinter()
        let result = try await Interruptible.run(
            "use neither store now; run the same command again to continue, or abandon the move with `fanfare move "
                + "--give-up`"
        ) {
            try await move.execute(by: ThisProcess.actor) { printer.show($0) }
        }
        Console.print(
            json
                ? try ResultJSON.text(result)
                : "moved to \(result.to): \(result.rows.counted("row")) of \(result.tables.count.counted("table")), equal in both stores; "
                    + "put `store: \(StoreAddress(Self.absolute(to)))` into the configuration")
    }

    /// Returns an absolute path, so that a configuration in another folder can name it.
    private static func absolute(_ address: String) -> String {
        StoreAddress(address).isURL ? address : URL(fileURLWithPath: address).path
    }
}

/// Shows the progress of a move: one line that updates itself on a terminal, or a plain line every ten seconds.
private final class MoveProgressPrinter: Sendable {
    private static let terminalInterval: Duration = .milliseconds(200)
    private static let plainInterval: Duration = .seconds(10)

    private let lastShown = Mutex(ContinuousClock.now)

    func show(_ progress: MoveStore.Progress) {
        let interval = Console.isTerminal ? Self.terminalInterval : Self.plainInterval
        let isDue = lastShown.withLock { last in
            guard last + interval <= .now else { return false }
            last = .now
            return true
        }
        guard isDue else { return }
        let verb =
            switch progress.phase {
            case .copying: "copying"
            case .provingNew: "reading the new store again"
            case .provingOld: "reading the old store again"
            }
        let line = "\(verb): \(progress.rows.counted("row")), at \(progress.table)"
        Console.isTerminal ? Console.progress(line) : Console.note(line)
    }
}
