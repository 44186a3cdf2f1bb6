package import Model
import Store

/// The webhooks that get messages: those of every daemon, or of the last command if no daemon was running.
///
/// Daemons may have different configurations for a while. The webhooks of a dead daemon stay until another process
/// registers its own, or until the nightly upkeep.
struct WebhookLists: Equatable {
    /// A URL and an event.
    typealias Entry = [String]

    private static let key = "webhook_lists"

    /// The entries by daemon.
    private(set) var ofDaemons: [String: [Entry]]
    private var registered: Set<Entry>

    init(_ db: some SQLSession) throws {
        ofDaemons = try StoredFact.value(Self.key, db) ?? [:]
        registered = try Self.registered(db)
    }

    static func registered(_ db: some SQLSession) throws -> Set<Entry> {
        Set(try db.all("SELECT url, event FROM webhook") { [try $0.text(0), try $0.text(1)] })
    }

    static func entries(_ webhooks: [Configuration.Webhook]) -> [Entry] {
        sorted(webhooks.flatMap { webhook in webhook.events.map { [webhook.url, $0.rawValue] } })
    }

    /// Returns the lists without those of dead daemons, and with these entries.
    ///
    /// - Parameter daemon: the daemon whose list the entries are; `nil` for a command.
    func adding(_ entries: [Entry], of daemon: String?, _ isAlive: OwnerLiveness.IsAlive) -> WebhookLists {
        var lists = self
        lists.ofDaemons = ofDaemons.filter { isAlive($0.key) }
        if let daemon { lists.ofDaemons[daemon] = entries }
        lists.registered = Set(lists.ofDaemons.values.joined()).union(entries)
        return lists
    }

    /// Writes the lists. The transaction must have locked the table.
    func write(_ db: some SQLSession) throws {
        try db.execute("DELETE FROM webhook")
        try db.execute("INSERT INTO webhook (url, event) VALUES ($1, $2)", each: Self.sorted(registered))
        try StoredFact.set(Self.key, ofDaemons, db)
    }

    private static func sorted(_ entries: some Sequence<Entry>) -> [Entry] {
        entries.sorted { $0.lexicographicallyPrecedes($1) }
    }
}

extension RelationalStore {
    package func setWebhooks(_ webhooks: [Configuration.Webhook], of daemon: String?) async throws {
        // Another process that registers meanwhile then finds this daemon alive.
        if let daemon { try await beatBeforeClaim(daemon) }
        let entries = WebhookLists.entries(webhooks)
        let change: @Sendable (Session) throws -> WebhookLists? = { [self] db in
            let known = try WebhookLists(db)
            let wanted = known.adding(entries, of: daemon, try living(db))
            return wanted == known ? nil : wanted
        }
        // Usually there is no change to write.
        guard try await snapshot(.short, { db in try change(db) != nil }) else { return }
        try await transaction(.quick) { db in
            try db.lock(table: "webhook")
            try change(db)?.write(db)
        }
    }

    package func keepWebhooks(_ webhooks: [Configuration.Webhook], of daemon: String) async throws {
        guard !webhooks.isEmpty else { return }
        let entries = WebhookLists.entries(webhooks)
        let isMissing = try await snapshot(.short) { db in !Set(entries).isSubset(of: try WebhookLists.registered(db)) }
        if isMissing { try await setWebhooks(webhooks, of: daemon) }
    }

    package func pruneWebhooks(messagesBefore moment: Timestamp) async throws -> Int {
        try await transaction(.quick) { [self] db in
            try db.lock(table: "webhook")
            let known = try WebhookLists(db)
            let current = known.adding([], of: nil, try living(db))
            // If no daemon is alive, the webhooks of the last command stay.
            if !current.ofDaemons.isEmpty, current != known { try current.write(db) }
            return try db.execute(
                "DELETE FROM webhook_message WHERE at < $1 AND url NOT IN (SELECT url FROM webhook)", moment)
        }
    }
}
