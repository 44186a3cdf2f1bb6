import HTTP2

/// The headers that the simulator looks at; the raw value is the index in the vocabulary.
enum RequestHeader: Int, CaseIterable {
    case method, path, authorization, topic, pushType, id, expiration, priority, collapseID, contentType

    private var name: String {
        switch self {
        case .method: ":method"
        case .path: ":path"
        case .authorization: "authorization"
        case .topic: "apns-topic"
        case .pushType: "apns-push-type"
        case .id: "apns-id"
        case .expiration: "apns-expiration"
        case .priority: "apns-priority"
        case .collapseID: "apns-collapse-id"
        case .contentType: "content-type"
        }
    }

    static let vocabulary = HeaderVocabulary(allCases.map(\.name))
}

extension IncomingRequest {
    subscript(_ header: RequestHeader) -> UnsafeRawBufferPointer? { value(header.rawValue) }

    /// For logs.
    func text(_ header: RequestHeader) -> String? {
        value(header.rawValue).map { String(decoding: $0, as: UTF8.self) }
    }
}
