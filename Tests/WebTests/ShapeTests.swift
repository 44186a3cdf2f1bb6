import Campaigns
import Foundation
import Model
import Testing

@testable import Web

/// The shape of a JSON value is derived from the type that is encoded.
struct ShapeTests {
    struct Inner: Codable, Sendable {
        var p50Ms: Double?
        var isOn: Bool
    }

    struct Outer: Codable, Sendable {
        var installationId: String
        var count: Int
        var byName: [String: Int]
        var parts: [Inner]
        var one: Inner?
        var words: [String]?
        var role: AccessRole?
    }

    @Test func `fields have their JSON names, and say whether they are required`() throws {
        let inner = Shape.object([
            .init(name: "p50_ms", shape: .number, isRequired: false),
            .init(name: "is_on", shape: .boolean, isRequired: true),
        ])
        let shape = try Shape.of(Outer.self)
        #expect(
            shape
                == .object([
                    .init(name: "installation_id", shape: .string, isRequired: true),
                    .init(name: "count", shape: .integer, isRequired: true),
                    .init(name: "by_name", shape: .map(.integer), isRequired: true),
                    .init(name: "parts", shape: .array(inner), isRequired: true),
                    .init(name: "one", shape: inner, isRequired: false),
                    .init(name: "words", shape: .array(.string), isRequired: false),
                    .init(name: "role", shape: .word(AccessRole.allCases.map(\.rawValue)), isRequired: false),
                ]))
    }

    @Test func `all faults of a body are reported together, each with its place`() throws {
        let body =
            #"{"installationid": "x", "count": 1.5, "by_name": {"a": "b"}, "parts": [{"is_on": 1}], "one": null}"#
        let problem = try #require(throws: Problem.self) {
            try JSONBody.value(Outer.self, from: Data(body.utf8))
        }
        #expect(problem.status == 422)
        #expect(
            problem.errors?.map { "\($0.pointer ?? ""): \($0.detail)" } == [
                #"/installationid: unknown field "installationid"; did you mean "installation_id"?"#,
                #"/installation_id: field "installation_id" is missing; it must be a string"#,
                #"/count: "count" must be a whole number"#,
                #"/by_name/a: "by_name/a" must be a whole number"#,
                #"/parts/0/is_on: "parts/0/is_on" must be true or false"#,
            ])
    }

    @Test(arguments: ["", "{", "[1", "\u{0}"])
    func `text that is not JSON is reported as such`(text: String) throws {
        let problem = try #require(throws: Problem.self) { try JSONBody.value(Outer.self, from: Data(text.utf8)) }
        #expect(problem.status == 400)
    }

    @Test func `a valid body is decoded`() throws {
        let body =
            #"{"installation_id": "x", "count": 2, "by_name": {"a": 1}, "parts": [{"is_on": true, "p50_ms": 1}]}"#
        let value = try JSONBody.value(Outer.self, from: Data(body.utf8))
        #expect(value.installationId == "x")
        #expect(value.parts.first?.p50Ms == 1)
    }
}
