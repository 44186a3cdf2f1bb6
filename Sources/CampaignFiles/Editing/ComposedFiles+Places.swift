extension ComposedFiles {
    /// Returns the form's field for a position in one of the two texts, counted from 1, such as `alert.de.title` or
    /// `guards.max_reach`. `nil` if the form has no field for it.
    ///
    /// - Parameter isTemplate: whether the position is in the template file.
    package func field(line: Int, column: Int, isTemplate: Bool) -> String? {
        guard line > 0, let root = isTemplate ? content : campaignContent else { return nil }
        let path = root.path(to: (line, column))
        return isTemplate ? TemplateFields.field(at: path, in: root) : CampaignFields.field(at: path)
    }
}

extension CampaignFields {
    fileprivate static func field(at path: [String]) -> String? {
        let inner = path.dropFirst().first
        switch path.first {
        case "audience": return "who"
        case "expires_after": return "expires_after"
        case "variables": return inner.map { "variables.\($0)" }
        case "guards": return inner.map { "guards.\($0)" }
        case "trigger":
            if inner == "variables", path.count > 2 { return "feed.variables.\(path[2])" }
            return inner == "every" ? "feed.every" : "feed"
        case "schedule":
            switch inner {
            case "at": return "at.date"
            case "cron": return "repeat.time"
            case "quiet_hours": return "quiet.\(path.count > 2 ? path[2] : "from")"
            case let name?: return name
            case nil: return "start"
            }
        default: return nil
        }
    }
}

extension TemplateFields {
    fileprivate static func field(at path: [String], in root: FileNode) -> String? {
        guard let first = path.first else { return nil }
        switch first {
        case "alert": return path.count > 1 ? "alert.\(path[1]).\(path.count > 2 ? path[2] : "title")" : nil
        case "custom": return path.count > 1 ? ownField(path[1], in: root) : nil
        default: return fieldKeys.contains(first) ? first : nil
        }
    }
}

extension FileNode {
    /// Returns the keys that lead to a position: at each level the last key before it.
    fileprivate func path(to position: (line: Int, column: Int)) -> [String] {
        var (path, node) = ([String](), self)
        while case .object(let members) = node.content {
            let before = members.last { ($0.location.line, $0.location.column) <= position }
            guard let member = before else { break }
            path.append(member.key)
            node = member.value
        }
        return path
    }
}
