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
        abstract: "Move the configured store to another place whole: to PostgreSQL, or back to a file.",
        discussion: """
            Everything goes along: devices, runs with their numbers and outcomes, the silent budget, the record of who did \
            what. Both stores are compared row by row before the new one is opened; from then on the old one says where it \
            went, and sends nothing any more. Put the new address under `store` in the configuration afterwards. \
            Pause what is being sent and stop `fanfare serve` first; stops in force move along. What was stopped in the middle goes on when the same \
            command is run again; until it is done neither store can be used.
            Exit codes: 0 moved; 3 there is a store at the new place already; 65 the copy is not equal; 75 the store is in \
            use, or the move was stopped.
            """)

    @OptionGroup var settings: Settings
    @Option(help: "Where to: postgres://USER@HOST/DATABASE, or the path of a file that is not there yet.")
    var to: String?
    @Flag(help: "Take back a move that is not done: the old store can be used again, the new one is to be removed.")
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
            return Console.note("\(old.path) can be used again; remove what was begun at the new place")
        }
        // Recover what an ended sender left in flight, unless the store may not be written any more.
        if old.departed == nil { try await session.recoverAbandoned() }
        let new = try await StoreOpening.open(Self.absolute(to), .arriving, isAlive: { _ in true })
        let stopFile = session.senders.stopFile
        let move = MoveStore(
            from: old, to: new, mover: try session.registration().name, stopsByFile: { stopFile.read() },
            now: { Timestamp(Date()) })
        let printer = MoveProgressPrinter()
        let result = try await Interruptible.run(
            "neither store is to be used; run the same command again to go on, or give it up with `fanfare move --give-up`"
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
