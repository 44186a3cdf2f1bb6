import Model
import Store

/// The waiting changes in groups. The changes of a group are released together, all or none.
///
/// The changes of one author belong together if one is a campaign that names the other, a template, directly or through
/// other changes. Changes of different authors belong together only if one of them cannot be released alone.
struct ReleaseGroups {
    /// All changes, oldest first.
    let waiting: [PendingChange]
    /// The number of each change's group.
    private var numbers: [Int64: Int]

    /// Creates groups of one change each.
    init(_ waiting: [PendingChange]) {
        self.waiting = waiting
        numbers = Dictionary(waiting.enumerated().map { ($1.id, $0) }) { $1 }
    }

    /// Returns the change and the others of its group, oldest first.
    func group(of id: Int64) -> [PendingChange] {
        guard let number = numbers[id] else { return [] }
        return waiting.filter { numbers[$0.id] == number }
    }

    func others(of id: Int64) -> [PendingChange] { group(of: id).filter { $0.id != id } }

    func isTogether(_ one: PendingChange, _ other: PendingChange) -> Bool { numbers[one.id] == numbers[other.id] }

    mutating func join(_ one: PendingChange, _ other: PendingChange) {
        guard let number = numbers[one.id], let old = numbers[other.id] else { return }
        numbers = numbers.mapValues { $0 == old ? number : $0 }
    }
}

extension ManageFiles {
    /// A waiting campaign and a waiting template that it names.
    private typealias Link = (campaign: PendingChange, template: PendingChange)

    func releaseGroups() async throws -> ReleaseGroups {
        let waiting = try await store.pendingChanges()
        var named: [String: Set<String>] = [:]
        for change in try await changesToCome() { named[change.campaign] = change.names?.templates }
        let templates = waiting.filter { $0.kind == Kind.template.rawValue }
        let links: [Link] = waiting.filter { $0.kind == Kind.campaign.rawValue }.flatMap { campaign in
            templates.filter { named[campaign.name]?.contains($0.name) == true }.map { (campaign, $0) }
        }
        var groups = ReleaseGroups(waiting)
        for link in links where link.campaign.author.identity == link.template.author.identity {
            groups.join(link.campaign, link.template)
        }
        for first in waiting { try await joinNeeded(by: first, links, in: &groups) }
        return groups
    }

    /// Joins a change's group with groups of other authors if it cannot be released without them.
    private func joinNeeded(by first: PendingChange, _ links: [Link], in groups: inout ReleaseGroups) async throws {
        let group = groups.group(of: first.id)
        // Check each group once, at its oldest change.
        guard group.first?.id == first.id else { return }
        var near: [PendingChange] = []
        for (campaign, template) in links where !groups.isTogether(campaign, template) {
            let other =
                groups.isTogether(campaign, first) ? template : groups.isTogether(template, first) ? campaign : nil
            guard let other, !near.contains(where: { groups.isTogether($0, other) }) else { continue }
            near.append(other)
        }
        guard !near.isEmpty, try await isWrong(group) else { return }
        for others in near.map({ [$0] }) + (near.count > 1 ? [near] : []) {
            let joined = group + others.flatMap { groups.group(of: $0.id) }
            guard try await !isWrong(joined) else { continue }
            for other in others { groups.join(first, other) }
            return
        }
    }

    /// Returns whether the files would have new errors if these changes were released, and no others.
    private func isWrong(_ changes: [PendingChange]) async throws -> Bool {
        var texts: [(text: NewText, path: String, askedAt: Timestamp)] = []
        var drafts: [String: String] = [:]
        for change in changes {
            guard let text = try await store.pendingChange(change.id)?.text else { return true }
            let path = try pathOrNew(kind(of: change), change.name)
            texts.append((NewText(try kind(of: change), change.name, text: text, nil), path, change.askedAt))
            drafts[path] = text
        }
        // At the time of its save, no start of the text was in the past.
        for (text, path, askedAt) in texts {
            guard try await errors(of: text, path: path, beside: drafts, now: askedAt).errors.isEmpty else {
                return true
            }
        }
        return false
    }
}
