import Campaigns
import Foundation
import Hummingbird
import Model
import ServiceLifecycle

/// A request to an operation, with an authenticated caller and checked parameters.
struct APIRequest: Sendable {
    /// The maximum size of a JSON body, in bytes.
    static let bodyBytesMax = 1 << 20
    /// The maximum size of one line in a body of JSON lines, in bytes.
    static let lineBytesMax = 1 << 16

    let caller: Caller
    let request: Request
    let context: WebContext
    private let operation: Operation
    private let isStill: @Sendable () async throws -> Bool
    fileprivate let query: [Substring: Substring]

    /// Throws if the address has a parameter that the operation does not know, or has a parameter twice.
    ///
    /// - Parameter isStill: returns whether the caller has the same rights as at the start of the request.
    init(
        _ request: Request, _ context: WebContext, _ caller: Caller, _ operation: Operation,
        isStill: @escaping @Sendable () async throws -> Bool
    ) throws {
        let parameters = operation.parameters
        self.operation = operation
        self.isStill = isStill
        self.caller = caller
        self.request = request
        self.context = context
        var query: [Substring: Substring] = [:]
        for (name, value) in request.uri.queryParameters {
            guard parameters.contains(where: { $0.place == .query && $0.name == name }) else {
                let names = parameters.filter { $0.place == .query }.map(\.name)
                throw Problem.invalid(
                    parameter: String(name),
                    "unknown parameter \"\(name)\"; "
                        + (Suggestion.nearest(to: String(name), among: names).map { "did you mean \"\($0)\"?" }
                            ?? (names.isEmpty
                                ? "this address takes none" : "there are \(names.joined(separator: ", "))"))
                )
            }
            guard query.updateValue(value, forKey: name) == nil else {
                throw Problem.invalid(parameter: String(name), "\"\(name)\" is given twice")
            }
        }
        self.query = query
    }

    /// Returns a parameter of the path, decoded.
    func path(_ name: String) -> String {
        let text = context.parameters.get(operation.place(of: name)) ?? ""
        return text.removingPercentEncoding ?? text
    }

    /// Returns a number in the path. Throws "not found" if the text is not a number.
    func number(_ name: String, of what: String) throws -> Int64 {
        guard let number = Int64(path(name)) else { throw Problem.notFound("no \(what) \(path(name)); give a number") }
        return number
    }

    func text(_ name: String) -> String? { query[Substring(name)].map(String.init) }

    func integer(_ name: String, in range: ClosedRange<Int>, otherwise: Int) throws -> Int {
        guard let text = text(name) else { return otherwise }
        guard let number = Int(text), range.contains(number) else {
            throw Problem.invalid(
                parameter: name, "\"\(name)\" must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func boolean(_ name: String) throws -> Bool {
        switch text(name) {
        case nil, "false": return false
        case "true": return true
        default: throw Problem.invalid(parameter: name, "\"\(name)\" must be true or false")
        }
    }

    /// Returns the maximum number of items on a page of a list: 1 to 500, by default 50.
    func limit() throws -> Int { try integer("limit", in: 1...500, otherwise: 50) }

    func moment(_ name: String) throws -> Timestamp? {
        guard let text = text(name) else { return nil }
        guard let moment = WrittenMoment.parse(text) else {
            throw Problem.invalid(parameter: name, "\"\(name)\" must be a time such as 2026-12-01T09:00:00Z")
        }
        return moment
    }

    /// Returns a parameter that is a value of an enumeration, or `nil` if the parameter is absent.
    func word<Word: RawRepresentable & CaseIterable>(_ name: String, _ type: Word.Type) throws -> Word?
    where Word.RawValue == String {
        guard let text = text(name) else { return nil }
        if let word = Word(rawValue: text) { return word }
        throw Problem.invalid(
            parameter: name, "\"\(name)\" must be one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))")
    }

    /// Returns a parameter that is one of the allowed words, or `nil` if the parameter is absent.
    func word(_ name: String, among allowed: [String]) throws -> String? {
        guard let text = text(name) else { return nil }
        guard allowed.contains(text) else {
            throw Problem.invalid(parameter: name, "\"\(name)\" must be one of \(allowed.joined(separator: ", "))")
        }
        return text
    }

    /// Returns the JSON body. Throws if a field is unknown, missing or of a wrong kind.
    func body<Value: Decodable>(_ type: Value.Type) async throws -> Value {
        try requireType("application/json")
        let buffer = try await collected(bytesMax: Self.bodyBytesMax)
        return try JSONBody.value(type, from: Data(buffer.readableBytesView))
    }

    /// Returns the JSON body, or `nil` if the body is empty.
    func optionalBody<Value: Decodable>(_ type: Value.Type) async throws -> Value? {
        let buffer = try await collected(bytesMax: Self.bodyBytesMax)
        guard buffer.readableBytes > 0 else { return nil }
        try requireType("application/json")
        return try JSONBody.value(type, from: Data(buffer.readableBytesView))
    }

    /// Throws 415 if the request declares another media type. A request that declares none is accepted.
    func requireType(_ type: String) throws {
        guard let given = request.headers[.contentType] else { return }
        let name = given.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        guard name != type else { return }
        throw Problem(
            415, "unsupported_media_type", "Unsupported media type",
            "the body must be \(type), but its Content-Type is \(name)"
        )
    }

    /// Performs long work. Cancels it when the client leaves or the server is told to stop.
    func whileClientStays<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        try await cancelWhenGracefulShutdown {
            try await context.whileClientStays(work)
        }
    }

    func collected(bytesMax: Int) async throws -> ByteBuffer {
        let body: ByteBuffer
        do {
            body = try await request.body.collect(upTo: bytesMax)
        } catch let error as any HTTPResponseError where error.status == .contentTooLarge {
            throw Problem.tooLarge("the body is larger than \(bytesMax) bytes")
        }
        try await requireStill()
        return body
    }

    /// Throws unless the caller has the same rights as at the start of the request, see ``Caller/requireStill(_:)``.
    func requireStill() async throws { try await caller.requireStill(isStill) }
}
