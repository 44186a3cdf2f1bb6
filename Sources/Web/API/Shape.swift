/// The shape of a JSON value. It is derived from the type that is encoded or decoded, so that both always agree. For
/// this, a decoder without data supplies placeholder values and records what the type requests.
indirect enum Shape: Hashable, Sendable {
    struct Field: Hashable, Sendable {
        /// The name in JSON.
        var name: String
        var shape: Shape
        var isRequired: Bool
    }

    case string, integer, number, boolean
    /// A string that is one of these words.
    case word([String])
    case array(Shape)
    /// An object with any keys.
    case map(Shape)
    case object([Field])

    /// Returns the shape of a type. Throws if the type rejects the placeholder values. Enumerations of strings are
    /// supported.
    static func of(_ type: (some Decodable).Type) throws -> Shape {
        let recorder = ShapeRecorder()
        _ = try type.init(from: recorder)
        return recorder.shape
    }
}

/// Records the shape of one place in a value, and acts as the decoder for that place.
private final class ShapeRecorder: Decoder {
    var codingPath: [any CodingKey] = []
    var userInfo: [CodingUserInfoKey: Any] = [:]

    private enum Form {
        case scalar(Shape)
        case fields([(name: String, place: ShapeRecorder, isRequired: Bool)])
        case elements(ShapeRecorder)
        case values(ShapeRecorder)
    }

    private var form = Form.fields([])

    var shape: Shape {
        switch form {
        case .scalar(let shape): shape
        case .fields(let fields):
            .object(fields.map { Shape.Field(name: $0.name, shape: $0.place.shape, isRequired: $0.isRequired) })
        case .elements(let element): .array(element.shape)
        case .values(let value): .map(value.shape)
        }
    }

    func isScalar(_ shape: Shape) { form = .scalar(shape) }

    func field(_ name: String, isRequired: Bool) -> ShapeRecorder {
        var fields: [(name: String, place: ShapeRecorder, isRequired: Bool)] = []
        if case .fields(let known) = form { fields = known }
        if let known = fields.first(where: { $0.name == name }) { return known.place }
        let place = ShapeRecorder()
        form = .fields(fields + [(name, place, isRequired)])
        return place
    }

    func element() -> ShapeRecorder {
        let place = ShapeRecorder()
        form = .elements(place)
        return place
    }

    /// Returns the place of a dictionary's values. Only a dictionary requests all keys; a type with fields knows its
    /// own.
    func value() -> ShapeRecorder {
        if case .values(let known) = form { return known }
        let place = ShapeRecorder()
        form = .values(place)
        return place
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Keyed<Key>(place: self))
    }

    func unkeyedContainer() -> any UnkeyedDecodingContainer { Unkeyed(place: element()) }

    func singleValueContainer() -> any SingleValueDecodingContainer { Single(place: self) }

    /// Creates a value of any type without data.
    func made<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if let cases = type as? any CaseIterable.Type, let (allowed, first) = Self.allowed(of: cases),
            let first = first as? Value
        {
            form = .scalar(.word(allowed))
            return first
        }
        return try Value(from: self)
    }

    private static func allowed<Word: CaseIterable>(of type: Word.Type) -> (allowed: [String], first: Word)? {
        let allowed = type.allCases.compactMap { ($0 as? any RawRepresentable)?.rawValue as? String }
        guard let first = type.allCases.first, allowed.count == type.allCases.count else { return nil }
        return (allowed, first)
    }
}

private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let place: ShapeRecorder
    var codingPath: [any CodingKey] = []

    var allKeys: [Key] {
        _ = place.value()
        return [Key(stringValue: "key")].compactMap(\.self)
    }

    func contains(_ key: Key) -> Bool { true }
    func decodeNil(forKey key: Key) -> Bool { false }

    private func place(_ key: Key, isRequired: Bool = true) -> ShapeRecorder {
        if case .map = place.shape { return place.value() }
        return place.field(FieldName.snakeCase(key.stringValue), isRequired: isRequired)
    }

    private func scalar(_ key: Key, _ shape: Shape, isRequired: Bool = true) {
        place(key, isRequired: isRequired).isScalar(shape)
    }

    func decode(_ type: Bool.Type, forKey key: Key) -> Bool { scalar(key, .boolean); return false }
    func decode(_ type: String.Type, forKey key: Key) -> String { scalar(key, .string); return "" }
    func decode(_ type: Double.Type, forKey key: Key) -> Double { scalar(key, .number); return 0 }
    func decode(_ type: Int.Type, forKey key: Key) -> Int { scalar(key, .integer); return 0 }
    func decode(_ type: Int64.Type, forKey key: Key) -> Int64 { scalar(key, .integer); return 0 }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try place(key).made(type)
    }

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) -> Bool? {
        scalar(key, .boolean, isRequired: false)
        return nil
    }

    func decodeIfPresent(_ type: String.Type, forKey key: Key) -> String? {
        scalar(key, .string, isRequired: false)
        return nil
    }

    func decodeIfPresent(_ type: Double.Type, forKey key: Key) -> Double? {
        scalar(key, .number, isRequired: false)
        return nil
    }

    func decodeIfPresent(_ type: Int.Type, forKey key: Key) -> Int? {
        scalar(key, .integer, isRequired: false)
        return nil
    }

    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) -> Int64? {
        scalar(key, .integer, isRequired: false)
        return nil
    }

    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        try place(key, isRequired: false).made(type)
    }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedDecodingContainer<
        Nested
    > {
        place(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedDecodingContainer { place(key).unkeyedContainer() }
    func superDecoder() -> any Decoder { place }
    func superDecoder(forKey key: Key) -> any Decoder { place(key) }
}

/// A list that seems to have one element.
private struct Unkeyed: UnkeyedDecodingContainer {
    let place: ShapeRecorder
    var codingPath: [any CodingKey] = []
    var count: Int? = 1
    var currentIndex = 0

    init(place: ShapeRecorder) { self.place = place }

    var isAtEnd: Bool { currentIndex > 0 }
    mutating func decodeNil() -> Bool { false }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        currentIndex += 1
        return try place.made(type)
    }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedDecodingContainer<Nested> {
        currentIndex += 1
        return place.container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedDecodingContainer {
        currentIndex += 1
        return place.unkeyedContainer()
    }

    mutating func superDecoder() -> any Decoder { place }
}

private struct Single: SingleValueDecodingContainer {
    let place: ShapeRecorder
    var codingPath: [any CodingKey] = []

    func decodeNil() -> Bool { false }
    func decode(_ type: Bool.Type) -> Bool { place.isScalar(.boolean); return false }
    func decode(_ type: String.Type) -> String { place.isScalar(.string); return "" }
    func decode(_ type: Double.Type) -> Double { place.isScalar(.number); return 0 }
    func decode(_ type: Float.Type) -> Float { place.isScalar(.number); return 0 }
    func decode(_ type: Int.Type) -> Int { place.isScalar(.integer); return 0 }
    func decode(_ type: Int8.Type) -> Int8 { place.isScalar(.integer); return 0 }
    func decode(_ type: Int16.Type) -> Int16 { place.isScalar(.integer); return 0 }
    func decode(_ type: Int32.Type) -> Int32 { place.isScalar(.integer); return 0 }
    func decode(_ type: Int64.Type) -> Int64 { place.isScalar(.integer); return 0 }
    func decode(_ type: UInt.Type) -> UInt { place.isScalar(.integer); return 0 }
    func decode(_ type: UInt8.Type) -> UInt8 { place.isScalar(.integer); return 0 }
    func decode(_ type: UInt16.Type) -> UInt16 { place.isScalar(.integer); return 0 }
    func decode(_ type: UInt32.Type) -> UInt32 { place.isScalar(.integer); return 0 }
    func decode(_ type: UInt64.Type) -> UInt64 { place.isScalar(.integer); return 0 }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try place.made(type) }
}

/// The names of fields in JSON.
enum FieldName {
    /// Returns the name as `JSONEncoder` writes it: `installation_id` for `installationId`, `p50_ms` for `p50Ms`.
    static func snakeCase(_ name: String) -> String {
        var result = ""
        for character in name {
            if character.isUppercase, !result.isEmpty { result.append("_") }
            result.append(character.lowercased())
        }
        return result
    }
}
