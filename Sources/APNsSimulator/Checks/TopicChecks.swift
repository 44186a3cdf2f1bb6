import HTTP2

/// May this credential push to this topic? (`apns-protocol.md` sections 2 and 4)
extension Inspection {
    /// Topics of an app certificate beside its bundle id (pushy's reading of `...6.3.6`).
    private static let certificateSuffixes: Set = ["", PushType.voip.topicSuffix, PushType.complication.topicSuffix]

    /// A certificate with one bundle id has a topic by default.
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
