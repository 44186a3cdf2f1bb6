/// The permissions of an access token's holder. `WebConsole` of the `Web` documentation has a table row for each role.
package enum AccessRole: String, Hashable, Sendable, Codable, CaseIterable {
    /// Reads everything and changes nothing.
    case viewer
    /// Writes campaigns and segments, plans campaigns, tests them on one device, and asks for approval of plans.
    case author
    /// Starts, pauses, resumes and cancels runs. May also do what an author does, except writing files.
    case sender
    /// Approves plans, stops faulty runs, and lifts stops.
    case approver
    case admin
    /// The backend of an app: registers and removes devices, and reads nothing else.
    case registrar

    /// A kind of action that a request needs permission for.
    package enum Permission: String, Hashable, Sendable, CaseIterable {
        /// Read runs, reports, campaigns, segments, devices, the audit and the service's health.
        case read
        /// Validate a text, plan, render, count an expression: computations that change nothing.
        case plan
        /// Ask for approval of a plan, and withdraw the request. This starts nothing.
        case ask
        /// Send one push to one device.
        case testSend = "test_send"
        /// Write campaign and template files, where the configuration allows it.
        case edit
        /// Define segments and change their members.
        case segments
        /// Start and resume runs.
        case run
        /// Pause, stop and cancel. Every role that may change a run has this permission.
        case halt
        /// Lift a stop of everything or of a campaign.
        case lift
        case approve
        /// Register and remove devices.
        case register
        /// Report what became of pushes and what people did.
        case report
        /// Create and revoke access tokens.
        case tokens
        /// Upload keys, add apps, name test devices, and import files of devices.
        case setup
    }

    package var permissions: Set<Permission> {
        switch self {
        case .viewer: [.read]
        case .author: [.read, .plan, .ask, .testSend, .edit, .segments]
        case .sender: [.read, .plan, .ask, .testSend, .segments, .run, .halt]
        case .approver: [.read, .plan, .halt, .lift, .approve]
        case .admin: Set(Permission.allCases)
        case .registrar: [.register, .report]
        }
    }

    package func may(_ permission: Permission) -> Bool { permissions.contains(permission) }
}
