@testable import APNsSimulator
import Foundation

/// Requests that were each made to cost a server more than they cost their client, chosen by a seed.
struct FuzzedRequests: Sendable {
    private enum Kind: CaseIterable {
        case campaignText, aliasBomb, deepAliases, deepNesting, quadraticText, audienceBomb, plan, reason, deepJSON
        case brokenHead
    }

    /// 45 levels of ten lines: a key that stands for 2^45 values.
    static let aliasBomb =
        "a0: &a0 [x,x]\n" + (1...44).map { "a\($0): &a\($0) [*a\($0 - 1),*a\($0 - 1)]\n" }.joined() + "? *a44\n: 1\n"

    /// 900 levels a line, each line within the next.
    static let deepAliases: String = {
        let (open, close) = (String(repeating: "[", count: 900), String(repeating: "]", count: 900))
        return "- &a0 \(open)x\(close)\n" + (1...40).map { "- &a\($0) \(open)*a\($0 - 1)\(close)\n" }.joined()
    }()

    private static let campaign = "campaign: a\ntopic: com.example.wendercast\npush_type: alert\ntemplate: a\n"
    private static let fragments = [
        "a: ", "x", "- ", "[", "]", "{", "}", ", ", "\n", "\n  ", "&a ", "*a ", "\"", "'", "? ", ": ", "| ", "> ", "%",
        "---\n", "<<: ", "\t", "\u{0600}", "§ ", "{{v}}", "tag(\"x\") or ", "not ", "(", ")",
    ]
    private static let signs = [
        "GET ", "POST ", " HTTP/1.1", "\r\n", "\n", ": ", "Host", "Content-Length", "Transfer-Encoding", "chunked",
        "-1",
        "9999999999999999999", "0\r\n", "\u{0}", "\u{7F}", "é", "/", "?", "%", "%zz", ";", "\t", "Expect: 100-continue",
    ]

    private let credentials: String
    private var random: SplitMix64

    init(credentials: String, seed: UInt64) {
        self.credentials = credentials
        random = SplitMix64(seed: seed)
    }

    static func head(_ method: String, _ path: String, _ credentials: String, length: Int? = nil) -> String {
        "\(method) \(path) HTTP/1.1\r\n\(credentials)"
            + (length.map { "Content-Type: application/json\r\nContent-Length: \($0)\r\n" } ?? "") + "\r\n"
    }

    static func json(_ body: [String: String]) -> String {
        (try? JSONSerialization.data(withJSONObject: body)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }

    /// The bytes of the next one, which need not be a whole request.
    mutating func next() -> String {
        let size = 1_000 << Int(random.next() % 7)
        switch Kind.allCases[Int(random.next() % UInt64(Kind.allCases.count))] {
        case .campaignText: return validate(mixed(Self.fragments, size: size))
        case .aliasBomb: return validate(Self.aliasBomb)
        case .deepAliases: return validate(Self.deepAliases)
        case .deepNesting: return validate(String(repeating: ["[", "{a: ", "- "][Int(random.next() % 3)], count: size))
        case .quadraticText:
            let unit = ["§ ", "{{v}}", "k: 1\n", "\"  \n"][Int(random.next() % 4)]
            return validate(Self.campaign + "audience: '" + String(repeating: unit, count: size) + "'\n")
        case .audienceBomb:
            let unit = ["(", "not ", "tag(\"x\") or ", "segment(\"s\") and "][Int(random.next() % 4)]
            return validate(Self.campaign + "audience: '\(String(repeating: unit, count: size / 4))everyone'\n")
        case .plan: return post("/api/v1/campaigns/orchain/plan", "{}")
        case .reason:
            let reason = String(repeating: ["z", "a\u{0301}", "fanfare_"][Int(random.next() % 3)], count: size)
            return post("/api/v1/campaigns/orchain/stop", Self.json(["reason": reason]))
        case .deepJSON: return post("/api/v1/stops/lift", String(repeating: "[", count: size))
        case .brokenHead: return mixed(Self.signs, size: size / 16)
        }
    }

    private func validate(_ text: String) -> String {
        post("/api/v1/campaigns/a/validate", Self.json(["text": text]))
    }

    private func post(_ path: String, _ body: String) -> String {
        Self.head("POST", path, credentials, length: body.utf8.count) + body
    }

    private mutating func mixed(_ parts: [String], size: Int) -> String {
        var text = ""
        while text.utf8.count < size { text += parts[Int(random.next() % UInt64(parts.count))] }
        return text
    }
}
