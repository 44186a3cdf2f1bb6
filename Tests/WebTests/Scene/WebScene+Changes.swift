import Campaigns
import Foundation
import Model
import TestSupport
import Testing

@testable import Web

extension WebScene {
    /// Reads a waiting change, and releases or rejects what belongs together.
    func end(_ id: Int64, _ verb: String, seen: [ChangeText]? = nil) async throws -> Answer {
        var texts = seen
        if texts == nil {
            texts = try await api("GET", "/changes/\(id)", as: .sender).result(ChangeDetailResult.self).texts
        }
        let fields = texts?.map { ["id": $0.id, "etag": $0.etag] as [String: Any] } ?? []
        let body = try JSONSerialization.data(withJSONObject: ["seen": fields])
        return try await api("POST", "/changes/\(id)/\(verb)", as: .sender, body: String(decoding: body, as: UTF8.self))
    }
}
