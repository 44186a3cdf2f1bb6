import Store
import Foundation
import Model

/// A run's definition as it is kept: JSON with sorted keys, and a hash that shows later changes. FNV-1a is enough for
/// that: it guards against damage and hand edits, not against an attacker who can write the store anyway.
struct RunDefinitionText {
    let json: String
    let hash: Int64

    init(_ definition: RunDefinition) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        self.init(json: String(decoding: try encoder.encode(definition), as: UTF8.self))
    }

    init(json: String) {
        self.json = json
        self.hash = Int64(bitPattern: FNV1a.hash(json))
    }

    func definition() throws -> RunDefinition {
        try JSONDecoder().decode(RunDefinition.self, from: Data(json.utf8))
    }
}
