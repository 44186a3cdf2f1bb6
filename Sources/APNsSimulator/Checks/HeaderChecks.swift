import HTTP2

/// Is it a push at all, and whose? (`ProviderProtocol` section 11, steps 2 to 4)
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
        // A certificate wins; `authorization` is then not looked at (`ProviderProtocol` section 2).
        guard connection.certificateTopic == nil else { return nil }
        let reason = connection.tokens.refusal(
            of: inspection.request[.authorization], policy: inspection.policy, environment: connection.environment,
            nowMs: inspection.nowMs)
        return reason.map { Verdict($0) }
    }
}

/// Are the `apns-` headers well-formed? (`ProviderProtocol` section 4)
extension Inspection {
    private static let priorities = ["10", "5", "1"].map { Array($0.utf8) }
    private static let highPriority = Array("10".utf8)
    private static let collapseIDBytesMax = 64

    /// 8-4-4-4-12 lower-case hex digits.
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

    /// UNIX seconds, not negative; at most 18 digits.
    static func expirationIsDecimal(_ inspection: inout Inspection) -> Verdict? {
        guard let expiration = inspection.request[.expiration] else { return nil }
        let isDecimal = expiration.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        return isDecimal && (1...18).contains(expiration.count) ? nil : Verdict(.badExpirationDate)
    }

    static func priorityIsKnown(_ inspection: inout Inspection) -> Verdict? {
        guard let priority = inspection.request[.priority] else { return nil }
        return priorities.contains { priority.isEqual(to: $0) } ? nil : Verdict(.badPriority)
    }

    /// A request without push type passes: only watchOS demands it.
    static func pushTypeIsKnown(_ inspection: inout Inspection) -> Verdict? {
        guard let text = inspection.request[.pushType] else { return nil }
        inspection.pushType = PushType(text)
        return inspection.pushType == nil ? Verdict(.invalidPushType) : nil
    }

    /// Bytes, not characters.
    static func collapseIDFits(_ inspection: inout Inspection) -> Verdict? {
        guard let collapseID = inspection.request[.collapseID] else { return nil }
        return collapseID.count > collapseIDBytesMax ? Verdict(.badCollapseID) : nil
    }

    /// Apple: 10 is an error for `background`; the reason is our choice.
    static func backgroundIsLowPriority(_ inspection: inout Inspection) -> Verdict? {
        guard inspection.pushType == .background else { return nil }
        // Absent means 10.
        let isHigh = inspection.request[.priority]?.isEqual(to: highPriority) ?? true
        return isHigh ? Verdict(.badPriority) : nil
    }
}
