import HTTP2

/// Checks whether the request is a push, and whether its credentials are valid (`ProviderProtocol` section 11, steps 2
/// to 4).
extension Inspection {
    private static let post = Array("POST".utf8)
    static let devicePath = Array("/3/device/".utf8)

    static func headerListFits(_ inspection: inout Inspection) -> Verdict? {
        inspection.request.headerListSize > inspection.policy.headerListBytesMax ? .headersTooLarge : nil
    }

    static func methodIsPost(_ inspection: inout Inspection) -> Verdict? {
        let isPost = inspection.request[.method]?.isEqual(to: post) ?? false
        return isPost ? nil : Verdict(.methodNotAllowed)
    }

    static func pathIsDevice(_ inspection: inout Inspection) -> Verdict? {
        guard let path = inspection.request[.path], path.hasPrefix(devicePath) else { return Verdict(.badPath) }
        return path.count == devicePath.count ? Verdict(.missingDeviceToken) : nil
    }

    static func headersComeOnce(_ inspection: inout Inspection) -> Verdict? {
        inspection.request.repeated == 0 ? nil : Verdict(.duplicateHeaders)
    }

    static func credentialsHold(_ inspection: inout Inspection) -> Verdict? {
        let connection = inspection.connection
        // A certificate takes precedence, and `authorization` is then ignored (`ProviderProtocol` section 2).
        guard connection.certificateTopic == nil else { return nil }
        let reason = connection.tokens.refusal(
            of: inspection.request[.authorization], policy: inspection.policy, environment: connection.environment,
            nowMs: inspection.nowMs)
        return reason.map { Verdict($0) }
    }
}

/// Checks whether the `apns-` headers are well-formed (`ProviderProtocol` section 4).
extension Inspection {
    private static let priorities = ["10", "5", "1"].map { Array($0.utf8) }
    private static let highPriority = Array("10".utf8)
    private static let collapseIDBytesMax = 64

    /// Requires an `apns-id` of lower-case hex digits in the form 8-4-4-4-12.
    static func idIsCanonical(_ inspection: inout Inspection) -> Verdict? {
        guard let id = inspection.request[.id] else { return nil }
        guard id.count == MessageID.characters else { return Verdict(.badMessageID) }
        for (index, character) in id.enumerated() {
            let isHyphen = index == 8 || index == 13 || index == 18 || index == 23
            let isDigit = character >= UInt8(ascii: "0") && character <= UInt8(ascii: "9")
            let isLetter = character >= UInt8(ascii: "a") && character <= UInt8(ascii: "f")
            guard isHyphen ? character == UInt8(ascii: "-") : isDigit || isLetter else { return Verdict(.badMessageID) }
        }
        return nil
    }

    /// Requires an expiration of 1 to 18 decimal digits.
    static func expirationIsDecimal(_ inspection: inout Inspection) -> Verdict? {
        guard let expiration = inspection.request[.expiration] else { return nil }
        let isDecimal = expiration.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        return isDecimal && (1...18).contains(expiration.count) ? nil : Verdict(.badExpirationDate)
    }

    static func priorityIsKnown(_ inspection: inout Inspection) -> Verdict? {
        guard let priority = inspection.request[.priority] else { return nil }
        return priorities.contains { priority.isEqual(to: $0) } ? nil : Verdict(.badPriority)
    }

    /// Requires a known push type. A request with no push type passes, because only watchOS requires one.
    static func pushTypeIsKnown(_ inspection: inout Inspection) -> Verdict? {
        guard let text = inspection.request[.pushType] else { return nil }
        inspection.pushType = PushType(text)
        return inspection.pushType == nil ? Verdict(.invalidPushType) : nil
    }

    /// Limits the length of the collapse id in bytes, not characters.
    static func collapseIDFits(_ inspection: inout Inspection) -> Verdict? {
        guard let collapseID = inspection.request[.collapseID] else { return nil }
        return collapseID.count > collapseIDBytesMax ? Verdict(.badCollapseID) : nil
    }

    /// Refuses priority 10 for a background push, which Apple calls an error. Apple names no reason for it, so Fanfare
    /// chose `BadPriority`.
    static func backgroundIsLowPriority(_ inspection: inout Inspection) -> Verdict? {
        guard inspection.pushType == .background else { return nil }
        // A request with no priority has priority 10.
        let isHigh = inspection.request[.priority]?.isEqual(to: highPriority) ?? true
        return isHigh ? Verdict(.badPriority) : nil
    }
}
