import Foundation
import HTTPTypes
import Hummingbird
import Model
import Synchronization

/// The OpenAPI 3.1 description of the API, generated from the operations when it is first requested.
final class OpenAPIDocument: Sendable {
    /// The statuses of problems that any operation may return.
    private static let common: [HTTPResponse.Status] = [
        .unauthorized, .forbidden, .unprocessableContent, .tooManyRequests, .internalServerError, .serviceUnavailable,
    ]
    /// The additional statuses of operations that take a body.
    private static let ofBodies: [HTTPResponse.Status] = [
        .badRequest, .requestTimeout, .contentTooLarge, .unsupportedMediaType,
    ]

    private let operations: [Operation]
    private let version: String
    /// One buffer for all responses, which share its bytes.
    private let made = Mutex<ByteBuffer?>(nil)

    init(_ operations: [Operation], version: String) {
        self.operations = operations
        self.version = version
    }

    private func json() throws -> ByteBuffer {
        try made.withLock { made in
            if let made { return made }
            let json = ByteBuffer(bytes: try text())
            made = json
            return json
        }
    }

    private func text() throws -> Data {
        var paths: [String: [String: Any]] = [:]
        for operation in operations {
            paths[operation.path, default: [:]][operation.method.rawValue.lowercased()] = try Self.entry(operation)
        }
        let document: [String: Any] = [
            "openapi": "3.1.0",
            "info": [
                "title": "Fanfare", "version": version,
                "description":
                    "The API of Fanfare. It gives the same results, messages and errors as the command line.",
            ],
            "servers": [["url": Operation.prefix]],
            "security": [["token": [String]()]],
            "paths": paths,
            "components": [
                "securitySchemes": ["token": ["type": "http", "scheme": "bearer"]],
                "schemas": ["Problem": try Shape.of(Problem.self).schema],
            ],
        ]
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        return try JSONSerialization.data(withJSONObject: document, options: options) + Data("\n".utf8)
    }

    /// The route of the document. Every client may read it, because it describes requests and contains no data.
    var route: PageRoute {
        .get("\(Operation.prefix)/openapi.json", nil) { [self] _ in
            Response(
                status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-cache"],
                body: ResponseBody(byteBuffer: try json()))
        }
    }

    private static func entry(_ operation: Operation) throws -> [String: Any] {
        var entry: [String: Any] = [
            "operationId": operation.id, "tags": [operation.subject], "summary": operation.about,
            "x-permission": operation.permission.rawValue, "responses": try answers(of: operation),
        ]
        if !operation.parameters.isEmpty { entry["parameters"] = operation.parameters.map(\.entry) }
        if let body = operation.body {
            entry["requestBody"] = ["required": operation.needsBody, "content": try body.entry]
        }
        return entry
    }

    private static func answers(of operation: Operation) throws -> [String: Any] {
        var answers: [String: Any] = [:]
        for status in common + operation.problems + (operation.body == nil ? [] : ofBodies) {
            answers["\(status.code)"] = [
                "description": status.reasonPhrase,
                "content": ["application/problem+json": ["schema": ["$ref": "#/components/schemas/Problem"]]],
            ]
        }
        for answer in operation.answers {
            var entry: [String: Any] = ["description": answer.about]
            if let content = answer.content {
                let table = try answer.isTable ? Operation.Content.text("text/csv").entry : [:]
                entry["content"] = try content.entry.merging(table) { first, _ in first }
            }
            answers["\(answer.status.code)"] = entry
        }
        return answers
    }
}

extension Operation.Parameter {
    fileprivate var entry: [String: Any] {
        var schema = shape.schema
        if !allowed.isEmpty { schema["enum"] = allowed }
        return [
            "name": name, "in": place.rawValue, "required": isRequired, "description": about, "schema": schema,
        ]
    }
}

extension Operation.Content {
    /// The content by media type.
    fileprivate var entry: [String: Any] {
        get throws {
            switch self {
            case .json(let type): ["application/json": ["schema": try Shape.of(type).schema]]
            case .jsonLines(let type):
                ["application/x-ndjson": ["schema": ["type": "string"], "x-line": try Shape.of(type).schema]]
            case .text(let type): [type: ["schema": ["type": "string"]]]
            }
        }
    }
}

extension Shape {
    /// The shape as JSON Schema 2020-12, which OpenAPI 3.1 uses.
    var schema: [String: Any] {
        switch self {
        case .string: ["type": "string"]
        case .word(let allowed): ["type": "string", "enum": allowed]
        case .integer: ["type": "integer"]
        case .number: ["type": "number"]
        case .boolean: ["type": "boolean"]
        case .array(let element): ["type": "array", "items": element.schema]
        case .map(let value): ["type": "object", "additionalProperties": value.schema]
        case .object(let fields):
            [
                "type": "object", "additionalProperties": false,
                "required": fields.filter(\.isRequired).map(\.name),
                "properties": Dictionary(fields.map { ($0.name, $0.shape.schema) }) { first, _ in first },
            ]
        }
    }
}
