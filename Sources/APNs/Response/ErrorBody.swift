/// The body of an error answer: `{"reason":"...","timestamp":...}` (`ProviderProtocol` section 7).
///
/// Anything may come from a proxy or a broken service: text that is not such an object gives what could be read
/// before the fault, or nothing. Other fields are skipped.
struct ErrorBody: Hashable {
    var reason: String?
    var timestamp: Int64?

    init(parsing bytes: [UInt8]) {
        var scanner = JSONScanner(bytes: bytes)
        guard scanner.take(UInt8(ascii: "{")) else { return }
        repeat {
            guard let name = scanner.string(), scanner.take(UInt8(ascii: ":")) else { return }
            switch name {
            case "reason":
                if let text = scanner.string() { reason = text } else if !scanner.skipValue() { return }
            case "timestamp":
                if let number = scanner.integer() { timestamp = number } else if !scanner.skipValue() { return }
            default:
                guard scanner.skipValue() else { return }
            }
        } while scanner.take(UInt8(ascii: ","))
    }
}
