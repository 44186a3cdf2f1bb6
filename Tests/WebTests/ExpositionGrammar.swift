/// Reads Prometheus' text format (version 0.0.4) as strictly as its description allows, and says where a text breaks it.
/// Written from the description, without a look at what writes it here.
struct ExpositionGrammar {
    struct Sample: Hashable {
        var name: String
        var labels: [String: String]
        var value: Double
    }

    struct Family {
        var type = "untyped"
        var hasHelp = false
        var samples: [Sample] = []
    }

    private(set) var families: [String: Family] = [:]
    private(set) var faults: [String] = []
    private var current: String?

    init(_ text: String) {
        if !text.isEmpty, !text.hasSuffix("\n") { faults.append("the last line does not end") }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() { read(String(line)) }
        for (name, family) in families { check(name, family) }
    }

    func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
        families.values.flatMap(\.samples).first { $0.name == name && $0.labels == labels }?.value
    }

    private mutating func read(_ line: String) {
        if line.isEmpty { return faults.append("an empty line") }
        if line.hasPrefix("# HELP ") || line.hasPrefix("# TYPE ") { return readHeading(line) }
        if line.hasPrefix("#") { return }
        guard let sample = Self.sample(line) else { return faults.append("not a sample: \(line)") }
        let family = Self.family(of: sample.name, in: families)
        if family != current {
            if families[family].map({ !$0.samples.isEmpty }) ?? false {
                faults.append("\(family) stands in two places")
            }
            current = family
        }
        if families[family, default: Family()].samples.contains(where: {
            $0.name == sample.name && $0.labels == sample.labels
        }) {
            faults.append("twice: \(line)")
        }
        families[family, default: Family()].samples.append(sample)
    }

    private mutating func readHeading(_ line: String) {
        let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false).map(String.init)
        guard words.count == 4, Self.isName(words[2], colon: true) else { return faults.append("heading: \(line)") }
        let known = families[words[2], default: Family()]
        if !known.samples.isEmpty { faults.append("the heading of \(words[2]) comes late") }
        if words[1] == "HELP" {
            if known.hasHelp { faults.append("two helps for \(words[2])") }
            families[words[2], default: Family()].hasHelp = true
        } else {
            if known.type != "untyped" { faults.append("two types for \(words[2])") }
            if !["counter", "gauge", "histogram", "summary"].contains(words[3]) { faults.append("type: \(line)") }
            families[words[2], default: Family()].type = words[3]
        }
    }

    /// A histogram's samples carry endings.
    private static func family(of name: String, in families: [String: Family]) -> String {
        for end in ["_bucket", "_sum", "_count"] where name.hasSuffix(end) {
            let base = String(name.dropLast(end.count))
            if families[base]?.type == "histogram" { return base }
        }
        return name
    }

    private static func isName(_ text: String, colon: Bool) -> Bool {
        guard let first = text.utf8.first, !(48...57).contains(first) else { return false }
        return text.utf8.allSatisfy {
            (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 95
                || (colon && $0 == 58)
        }
    }

    private static func sample(_ line: String) -> Sample? {
        var rest = Substring(line)
        let name = rest.prefix { $0 != "{" && $0 != " " }
        guard isName(String(name), colon: true) else { return nil }
        rest = rest.dropFirst(name.count)
        var labels: [String: String] = [:]
        if rest.first == "{" {
            rest = rest.dropFirst()
            while rest.first != "}" {
                guard let (label, value) = label(&rest), labels.updateValue(value, forKey: label) == nil else {
                    return nil
                }
                if rest.first == "," { rest = rest.dropFirst() } else if rest.first != "}" { return nil }
            }
            rest = rest.dropFirst()
        }
        guard rest.first == " ", let value = number(rest.dropFirst()) else { return nil }
        return Sample(name: String(name), labels: labels, value: value)
    }

    private static func label(_ rest: inout Substring) -> (String, String)? {
        let name = rest.prefix { $0 != "=" }
        rest = rest.dropFirst(name.count)
        guard isName(String(name), colon: false), !name.hasPrefix("__"), rest.hasPrefix("=\"") else { return nil }
        rest = rest.dropFirst(2)
        var value = ""
        while let character = rest.first, character != "\"" {
            rest = rest.dropFirst()
            guard character == "\\" else {
                value.append(character)
                continue
            }
            switch rest.first {
            case "\\": value.append("\\")
            case "\"": value.append("\"")
            case "n": value.append("\n")
            default: return nil
            }
            rest = rest.dropFirst()
        }
        guard rest.first == "\"" else { return nil }
        rest = rest.dropFirst()
        return (String(name), value)
    }

    private static func number(_ text: Substring) -> Double? {
        switch text {
        case "+Inf": .infinity
        case "-Inf": -.infinity
        case "NaN": .nan
        default: text.contains { $0.isWhitespace } ? nil : Double(text)
        }
    }

    private mutating func check(_ name: String, _ family: Family) {
        if family.type == "untyped" || !family.hasHelp { faults.append("\(name) has no heading") }
        switch family.type {
        case "counter":
            if !name.hasSuffix("_total") { faults.append("the counter \(name) does not end in _total") }
            if family.samples.contains(where: { !($0.value >= 0) }) { faults.append("the counter \(name) is negative") }
        case "histogram": checkHistogram(name, family)
        default: break
        }
    }

    private mutating func checkHistogram(_ name: String, _ family: Family) {
        let series = Set(family.samples.map { $0.labels.filter { $0.key != "le" } })
        for labels in series {
            let own = family.samples.filter { sample in sample.labels.filter { $0.key != "le" } == labels }
            let buckets = own.filter { $0.name == name + "_bucket" }.map {
                ($0.labels["le"].flatMap { Self.number(Substring($0)) }, $0.value)
            }
            let bounds = buckets.map { $0.0 ?? .nan }
            let counts = buckets.map(\.1)
            let count = own.filter { $0.name == name + "_count" }.map(\.value)
            let isRising =
                zip(bounds, bounds.dropFirst()).allSatisfy { $0 < $1 }
                && zip(counts, counts.dropFirst()).allSatisfy { $0 <= $1 }
            if bounds.last != .infinity || !isRising || count != counts.suffix(1)
                || own.filter({ $0.name == name + "_sum" }).count != 1
            {
                faults.append("the histogram \(name) \(labels) does not add up")
            }
        }
    }
}
