import HTTP2

/// Checks whether the credential may push to the topic (`ProviderProtocol` sections 2 and 4).
extension Inspection {
    /// The suffixes of an app certificate's topics, in addition to its bundle id (pushy's reading of `...6.3.6`).
    private static let certificateSuffixes: Set = ["", PushType.voip.topicSuffix, PushType.complication.topicSuffix]

    /// Requires a topic, unless a certificate with one bundle id provides a default.
    static func topicIsGiven(_ inspection: inout Inspection) -> Verdict? {
        if let topic = inspection.request[.topic], !topic.isEmpty { return nil }
        return inspection.connection.certificateTopic == nil ? Verdict(.missingTopic) : nil
    }

    static func topicIsKnown(_ inspection: inout Inspection) -> Verdict? {
        let certificate = inspection.connection.certificateTopic
        let topics = certificate?.topics ?? inspection.state.topics
        if let text = inspection.request[.topic], !text.isEmpty {
            inspection.topic = topics.topic(text)
        } else {
            inspection.topic = certificate?.standard
        }
        return inspection.topic == nil ? Verdict(.badTopic) : nil
    }

    static func topicIsAllowed(_ inspection: inout Inspection) -> Verdict? {
        guard let topic = inspection.topic else { return Verdict(.badTopic) }
        if inspection.connection.certificateTopic != nil {
            return certificateSuffixes.contains(topic.suffix) ? nil : Verdict(.topicDisallowed)
        }
        guard let allowed = inspection.connection.tokens.key?.key.topics else { return nil }
        return allowed.contains(topic.base) ? nil : Verdict(.topicDisallowed)
    }

    static func topicFitsPushType(_ inspection: inout Inspection) -> Verdict? {
        guard let pushType = inspection.pushType, let topic = inspection.topic else { return nil }
        return topic.suffix == pushType.topicSuffix ? nil : Verdict(.topicDisallowed)
    }
}

/// The topics that the service knows: every bundle id with every suffix.
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

    /// Adds the bundle id of a topic that a token was registered for.
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

/// A push type and the required suffix of its topic (`ProviderProtocol` section 4).
enum PushType: String, CaseIterable {
    case alert, background, location, voip, complication, fileprovider, mdm, liveactivity, pushtotalk, widgets, controls

    var topicSuffix: String {
        switch self {
        case .alert, .background, .mdm: ""
        case .location: ".location-query"
        case .voip: ".voip"
        case .complication: ".complication"
        case .fileprovider: ".pushkit.fileprovider"
        case .liveactivity: ".push-type.liveactivity"
        case .pushtotalk: ".voip-ptt"
        case .widgets: ".push-type.widgets"
        case .controls: ".push-type.controls"
        }
    }

    private static let byBytes = allCases.map { (bytes: Array($0.rawValue.utf8), type: $0) }

    init?(_ text: UnsafeRawBufferPointer) {
        guard let found = Self.byBytes.first(where: { text.isEqual(to: $0.bytes) }) else { return nil }
        self = found.type
    }
}
