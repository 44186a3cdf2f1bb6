import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Model

/// A list as CSV. Each field of the results has a column. A field of an inner object has a column such as
/// `counts.accepted`.
enum ListTable {
    static let type = "text/csv; charset=utf-8"

    static func text<Item: Codable>(_ items: [Item]) throws -> String {
        let columns = Self.columns(try Shape.of(Item.self), under: [])
        let data = Data(try ResultJSON.text(items).utf8)
        let rows = try JSONSerialization.jsonObject(with: data) as? [Any] ?? []
        let lines = rows.map { row in columns.map { Self.field(Self.value(row, $0)) } }
        return ([columns.map { $0.joined(separator: ".") }] + lines).map { CSVLine.text($0) + "\n" }.joined()
    }

    private static func columns(_ shape: Shape, under path: [String]) -> [[String]] {
        guard case .object(let fields) = shape, !fields.isEmpty else { return [path] }
        return fields.flatMap { columns($0.shape, under: path + [$0.name]) }
    }

    private static func value(_ row: Any, _ path: [String]) -> Any? {
        path.reduce(row as Any?) { value, key in (value as? [String: Any])?[key] }
    }

    /// Returns the text of a field. A list of texts, such as a device's tags, is joined with semicolons. Other lists
    /// and objects are JSON.
    private static func field(_ value: Any?) -> String {
        switch value {
        case nil, is NSNull: return ""
        case let text as String: return text
        case let texts as [String]: return texts.joined(separator: ";")
        case let number as NSNumber: return number.isTruth ? (number.boolValue ? "true" : "false") : "\(number)"
        case let value?:
            let data = try? JSONSerialization.data(
                withJSONObject: value, options: [.sortedKeys, .withoutEscapingSlashes])
            return data.map { String(decoding: $0, as: UTF8.self) } ?? ""
        }
    }
}

extension NSNumber {
    /// Whether the number stands for true or false in JSON.
    var isTruth: Bool { String(cString: objCType) == "c" }
}

extension Operation.Parameter {
    static let formats = ["json", "csv"]
    /// The format of a list.
    static let format = query("format", "`csv` for a table; `Accept: text/csv` does the same.", allowed: formats)
}

extension APIRequest {
    /// Returns one page of a list, as JSON or as CSV. The header `Link` also contains the address of the next page.
    func list<Item: Codable & Sendable>(_ items: [Item], next: String?) throws -> Response {
        var headers: HTTPFields = [:]
        if let next, let name = HTTPField.Name("Link") { headers[name] = "<\(address(cursor: next))>; rel=\"next\"" }
        guard try word("format", among: Operation.Parameter.formats) == "csv" || acceptsTable else {
            return try .json(ListPage(items: items, next: next), headers: headers)
        }
        return .table(try ListTable.text(items), headers: headers)
    }

    private var acceptsTable: Bool { text("format") == nil && request.headers[.accept]?.contains("text/csv") ?? false }

    private func address(cursor: String) -> String {
        let kept = request.uri.query?.split(separator: "&").filter { !$0.hasPrefix("cursor=") } ?? []
        return request.uri.path + "?" + (kept + ["cursor=\(cursor.inAddress)"]).joined(separator: "&")
    }
}

extension Response {
    static func table(_ text: String, headers: HTTPFields = [:]) -> Response {
        var response = Response.text(text, type: ListTable.type)
        for field in headers { response.headers.append(field) }
        return response
    }
}
