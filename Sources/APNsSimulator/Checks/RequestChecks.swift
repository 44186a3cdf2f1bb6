import HTTP2

/// Is it a push at all, and whose? (`apns-protocol.md` section 11, steps 2 to 4)
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
        // A certificate wins; `authorization` is then not looked at (`apns-protocol.md` section 2).
        guard connection.certificateTopic == nil else { return nil }
        let reason = connection.tokens.refusal(
            of: inspection.request[.authorization], policy: inspection.policy, environment: connection.environment,
            nowMs: inspection.nowMs)
        return reason.map { Verdict($0) }
    }
}
