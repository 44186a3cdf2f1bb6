import Model
import RelationalStore
import Store

/// Compiles an audience into PostgreSQL's SQL over the table `device`.
enum AudienceCompiler {
    /// Returns SQL that needs no further brackets.
    static func sql(_ audience: ResolvedAudience, _ condition: inout AudienceCondition) -> String {
        switch audience {
        case .everyone: "TRUE"
        case .noDevice: "FALSE"
        case .all(let parts): "(" + parts.map { sql($0, &condition) }.joined(separator: " AND ") + ")"
        case .any(let parts): any(of: parts, &condition)
        case .not(let part): "(NOT \(sql(part, &condition)))"
        case .member(let segment):
            "(device.id IN (SELECT device_id FROM segment_member WHERE segment_id = \(condition.add(segment))))"
        case .tagged(let name):
            """
            EXISTS (SELECT 1 FROM tag WHERE tag.device_id = device.id AND tag.name = \(condition.addText(name)))
            """
        default: "((\(predicate(audience, &condition))) IS TRUE)"
        }
    }

    /// Looks up all tags together, and all segments together. A separate condition for each would cost one more
    /// look-up for every device.
    private static func any(of parts: [ResolvedAudience], _ condition: inout AudienceCondition) -> String {
        var (tags, segments): ([String], [Int64]) = ([], [])
        var rest: [ResolvedAudience] = []
        for part in parts {
            switch part {
            case .tagged(let name): tags.append(name)
            case .member(let segment): segments.append(segment)
            default: rest.append(part)
            }
        }
        var sides = rest.map { sql($0, &condition) }
        if !tags.isEmpty {
            sides.append(
                "EXISTS (SELECT 1 FROM tag WHERE tag.device_id = device.id AND tag.name = ANY (\(condition.addTexts(tags))))"
            )
        }
        if !segments.isEmpty {
            let list = condition.add(segments)
            sides.append("(device.id IN (SELECT device_id FROM segment_member WHERE segment_id = ANY (\(list))))")
        }
        return "(" + sides.joined(separator: " OR ") + ")"
    }

    private static func predicate(_ audience: ResolvedAudience, _ condition: inout AudienceCondition) -> String {
        switch audience {
        case .compared(let field, let comparison, let value):
            return "\(column(field, &condition)) \(comparison.sql) \(condition.add(value, of: field))"
        case .between(let field, let low, let high):
            let column = column(field, &condition)
            return "\(column) BETWEEN \(condition.add(low, of: field)) AND \(condition.add(high, of: field))"
        case .oneOf(let field, let values):
            return "\(column(field, &condition)) = ANY (\(condition.add(values, of: field)))"
        case .locales(let conditions):
            return conditions.isEmpty ? "FALSE" : "(" + locales(conditions, &condition).joined(separator: " OR ") + ")"
        case .isNull(let field):
            return "\(DeviceColumn(.postgres).stored(field) { condition.addText($0) }) IS NULL"
        case .everyone, .noDevice, .all, .any, .not, .member, .tagged: return "FALSE"
        }
    }

    /// Looks up together all languages that need no further condition.
    private static func locales(_ asked: [LocaleCondition], _ condition: inout AudienceCondition) -> [String] {
        let plain = asked.filter(\.isPlain).map(\.language)
        let others = asked.filter { !$0.isPlain }.map { asked in
            // The language comes first, so that one comparison excludes the devices of all other languages.
            var parts = [begins(withAny: [asked.language], &condition)]
            if asked.prefixes != [asked.language] { parts.append(begins(withAny: asked.prefixes, &condition)) }
            if !asked.exceptions.isEmpty { parts.append("NOT " + begins(withAny: asked.exceptions, &condition)) }
            if asked.isWithoutScripts {
                parts.append("device.locale !~ \(condition.addText("^\(asked.language)-[A-Za-z]{4}(-|$)"))")
            }
            return "(" + parts.joined(separator: " AND ") + ")"
        }
        return (plain.isEmpty ? [] : [begins(withAny: plain, &condition)]) + others
    }

    private static func begins(withAny prefixes: [String], _ condition: inout AudienceCondition) -> String {
        // `.` is the character after `-`.
        """
        EXISTS (
            SELECT 1 FROM unnest(\(condition.addTexts(prefixes))) AS asked (tag)
            WHERE device.locale = tag OR (device.locale > tag || '-' AND device.locale < tag || '.')
        )
        """
    }

    private static func column(_ field: AudienceField, _ condition: inout AudienceCondition) -> String {
        DeviceColumn(.postgres).comparable(field) { condition.addText($0) }
    }
}

extension AudienceCondition {
    /// Adds a text that is compared by the collation `C` and not by that of the database. `BETWEEN` accepts a
    /// `COLLATE` only in brackets.
    fileprivate mutating func addText(_ text: String) -> String {
        "(\(add(StorableText.without(text)))::text COLLATE \"C\")"
    }

    fileprivate mutating func addTexts(_ texts: [String]) -> String {
        "\(add(texts.map { StorableText.without($0) }))::text[]"
    }

    fileprivate mutating func add(_ value: AudienceOperand, of field: AudienceField) -> String {
        switch value {
        case .text(let text): addText(Self.folded(text, of: field))
        case .boolean(let flag): "\(add(flag))::boolean"
        case .time(let milliseconds): "\(add(milliseconds))::bigint"
        case .number(let number): "\(add(number))::double precision"
        }
    }

    /// Adds the elements as texts. The statement casts them to the type of the column.
    fileprivate mutating func add(_ values: [AudienceOperand], of field: AudienceField) -> String {
        let list = addTexts(values.map { Self.folded($0.listed, of: field) })
        return switch field.kind {
        case .text, .locale, .version: list
        case .boolean: "\(list)::boolean[]"
        case .time: "\(list)::bigint[]"
        case .number: "\(list)::double precision[]"
        }
    }

    /// Returns the text, in lower case for a country, because countries are compared without case.
    private static func folded(_ text: String, of field: AudienceField) -> String {
        field == .country ? String(text.map { $0.isASCII ? Character($0.lowercased()) : $0 }) : text
    }
}
