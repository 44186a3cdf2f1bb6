/// What the holder of an access token may do, each word with its table row in `Studio` of the `Web` documentation.
package enum AccessRole: String, Hashable, Sendable, Codable, CaseIterable {
    /// Looks at everything, changes nothing.
    case viewer
    /// Writes campaigns and segments, plans them, and tries them on one device.
    case author
    /// Starts, pauses, resumes and cancels runs, and what an author does except writing files.
    case sender
    /// Approves plans; stops what goes wrong, and lifts that.
    case approver
    case admin
    /// The backend of an app: registers and removes devices, and sees nothing else.
    case registrar

    /// A kind of thing that can be asked for.
    package enum Permission: String, Hashable, Sendable, CaseIterable {
        /// See runs, reports, campaigns, segments, devices, the audit and how the service is.
        case read
        /// Validate a text, plan, render, count an expression: whatever computes and changes nothing.
        case plan
        /// One push to one device.
        case testSend = "test_send"
        /// Write campaign and template files, where the configuration allows it at all.
        case edit
        /// Define segments and change their members.
        case segments
        /// Start and resume runs.
        case run
        /// Pause, stop and cancel: the least that anybody who may act at all can do.
        case halt
        /// End a stop of everything or of a campaign.
        case lift
        case approve
        /// Register and remove devices.
        case register
        /// Make and revoke access tokens.
        case tokens
    }

    package var permissions: Set<Permission> {
        switch self {
        case .viewer: [.read]
        case .author: [.read, .plan, .testSend, .edit, .segments]
        case .sender: [.read, .plan, .testSend, .segments, .run, .halt]
        case .approver: [.read, .plan, .halt, .lift, .approve]
        case .admin: Set(Permission.allCases)
        case .registrar: [.register]
        }
    }

    package func may(_ permission: Permission) -> Bool { permissions.contains(permission) }
}
