/// The topics the service knows: every bundle id with every suffix.
struct TopicTable: Sendable {
    struct Topic: Sendable {
        let bytes: [UInt8]
        /// The bundle id.
        let base: String
        let suffix: String
    }

    private static let suffixes = Set(PushType.allCases.map(\.topicSuffix)).sorted()

    private var bases: Set<String> = []
    private var topics: [Topic] = []

    init(_ bases: Set<String>) {
        for base in bases.sorted() { add(base) }
    }

    /// Takes the bundle id out of a topic as a token was registered for.
    mutating func add(_ topic: String) {
        let suffix = Self.suffixes.last { !$0.isEmpty && topic.hasSuffix($0) } ?? ""
        let base = String(topic.dropLast(suffix.count))
        guard bases.insert(base).inserted else { return }
        topics += Self.suffixes.map { Topic(bytes: Array((base + $0).utf8), base: base, suffix: $0) }
    }

    func topic(_ text: UnsafeRawBufferPointer) -> Topic? {
        topics.first { text.isEqual(to: $0.bytes) }
    }
}
