import Model
import Store
import Testing

extension DaemonLogContract {
    private static let (a, b) = ("https://a.example", "https://b.example")

    @PromiseList static var webhookLists: [Promise] {
        Promise("daemons with different webhooks have all of them, in whatever order they start") { store in
            try await store.setWebhooks(hooks(a, b), of: "one")
            try await store.setWebhooks(hooks(b), of: "two")
            #expect(try await hearing(store) == [a, b])
            try await store.setWebhooks(hooks(b), of: "one")
            #expect(try await hearing(store) == [b])
            try await store.setWebhooks([], of: "one")
            #expect(try await hearing(store) == [b])
        }
        Promise("a daemon keeps an event of a webhook that another daemon has without it") { store in
            try await store.setWebhooks([.init(url: a, secretPath: "/s", events: [.failed])], of: "one")
            try await store.setWebhooks([.init(url: a, secretPath: "/s", events: [.finished])], of: "two")
            #expect(try await hearing(store) == [a])
        }
        Promise(
            "the webhooks of a daemon that is gone are removed by the next registration, and by the upkeep",
            opening: { stores in
                let owners = Mortals()
                let store = try await stores.open(owners.isAlive)
                try await store.setWebhooks(hooks(a), of: "one")
                try await store.setWebhooks(hooks(b), of: "two")
                owners.end("one")
                #expect(try await hearing(store) == [a, b])
                try await store.setWebhooks(hooks(b), of: "three")
                #expect(try await hearing(store) == [b])
                try await store.setWebhooks(hooks(a), of: "four")
                owners.end("four")
                #expect(try await hearing(store) == [a, b])
                #expect(try await store.pruneWebhooks(messagesBefore: noon) == 0)
                #expect(try await hearing(store) == [b])
                // With no daemon left, the next process decides.
                for name in ["two", "three"] { owners.end(name) }
                #expect(try await store.pruneWebhooks(messagesBefore: noon) == 0)
                #expect(try await hearing(store) == [b])
                try await store.setWebhooks(hooks(a), of: nil)
                #expect(try await hearing(store) == [a])
            })
        Promise("the webhooks of a command stay beside those of living daemons until the next registration") { store in
            try await store.setWebhooks(hooks(a), of: "one")
            try await store.setWebhooks(hooks(b), of: nil)
            #expect(try await hearing(store) == [a, b])
            try await store.setWebhooks(hooks(a), of: "one")
            #expect(try await hearing(store) == [a])
        }
        Promise(
            "a daemon that another one took for dead adds its webhooks again, and removes no others",
            opening: { stores in
                let owners = Mortals()
                let store = try await stores.open(owners.isAlive)
                try await store.setWebhooks(hooks(a), of: "one")
                owners.end("one")
                try await store.setWebhooks(hooks(b), of: "two")
                #expect(try await hearing(store) == [b])
                try await store.keepWebhooks(hooks(a), of: "one")
                try await store.keepWebhooks(hooks(b), of: "two")
                #expect(try await hearing(store) == [a, b])
            })
        Promise("messages to a webhook that no daemon has wait, are not claimed, and are deleted by their age") {
            store in
            try await store.setWebhooks(hooks(a, b), of: "one")
            let run = try await store.startRun(try definition())
            try await store.release(run, by: "a", state: .paused, reason: "breaker", now: noon)
            try await store.setWebhooks(hooks(b), of: "one")
            #expect(try await store.observation(now: noon).webhookMessages == 1)
            #expect(try await store.nextWebhookMessage(of: [a]) == nil)
            let later = noon + .seconds(60)
            #expect(try await store.takeWebhookMessages(now: noon, limit: 9, until: later, of: [a]).isEmpty)
            let other = try await store.takeWebhookMessages(now: noon, limit: 9, until: later)
            #expect(other.map(\.url) == [b])
            try await store.removeWebhookMessage(try #require(other.first).id)
            // A daemon that starts with the older configuration loses nothing of the newer one.
            #expect(try await store.pruneWebhooks(messagesBefore: noon) == 0)
            try await store.setWebhooks(hooks(a, b), of: "one")
            #expect(try await store.nextWebhookMessage(of: [a]) == noon)
            #expect(try await store.pruneWebhooks(messagesBefore: later) == 0)
            try await store.setWebhooks(hooks(b), of: "one")
            #expect(try await store.pruneWebhooks(messagesBefore: later) == 1)
            try await store.setWebhooks(hooks(a, b), of: "one")
            #expect(try await store.nextWebhookMessage() == nil)
        }
    }

    private static func hooks(_ urls: String...) -> [Configuration.Webhook] {
        urls.map { Configuration.Webhook(url: $0, secretPath: "/s") }
    }

    /// The webhooks that get a message about a run that fails now.
    private static func hearing(_ store: any AllRoles) async throws -> [String] {
        let number = try await store.runs(limit: 100).count
        _ = try await store.createEndedRun(
            try definition(), occurrence: "\(number)", state: .failed, reason: "r", now: noon, by: "a")
        let taken = try await store.takeWebhookMessages(now: noon, limit: 9, until: noon + .seconds(60))
        for message in taken { try await store.removeWebhookMessage(message.id) }
        return Set(taken.map(\.url)).sorted()
    }
}
