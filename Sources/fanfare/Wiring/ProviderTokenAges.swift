import APNs
import Synchronization

/// The provider tokens of this process, for whoever asks how old they are.
enum ProviderTokenAges {
    private static let sources = Mutex<[String: ProviderTokenSource]>([:])

    static func watch(_ source: ProviderTokenSource, topic: String) {
        sources.withLock { $0[topic] = source }
    }

    /// By topic; those that were never used have none.
    static func all() -> [(topic: String, age: Duration)] {
        let sources = sources.withLock { $0 }
        return sources.sorted { $0.key < $1.key }.compactMap { topic, source in source.age.map { (topic, $0) } }
    }
}
