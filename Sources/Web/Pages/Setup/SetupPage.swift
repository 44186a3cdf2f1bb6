import Campaigns
import Model

/// The page of the steps, with the forms that do the work.
struct SetupPage: Sendable {
    struct Link: Sendable {
        var address: String
        var label: String
    }

    /// A key file that the configuration names.
    struct Key: Sendable {
        /// The value that identifies the key in the form.
        var id: String
        var topic: String
        var environments: String
        var teamID: String
        var keyID: String
        /// Whether a key is in its place.
        var exists: Bool
        /// The reason why the key cannot be uploaded. `nil` if it can.
        var obstacle: String?
        /// The answers of APNs to the key that was just uploaded and not written. Empty if there are none.
        var answers: [String] = []
        /// Whether the form offers to keep a key that APNs does not accept.
        var offersKeeping = false
    }

    /// The form for a new app, with the values as typed.
    struct NewApp: Sendable {
        var topic = ""
        var teamID = ""
        var keyID = ""
        var environments: [FormChoice]
        /// The reason why the configuration cannot be changed here. `nil` if it can.
        var obstacle: String?
        /// Whether the form is shown open.
        var isOpen: Bool
    }

    struct TestDevices: Sendable {
        struct Device: Sendable {
            var name: String
            var installation: String
            var mayRemove: Bool
        }

        var devices: [Device]
        var hasDevices: Bool
        /// The reason why the list cannot be changed here. `nil` if it can.
        var obstacle: String?
        var mayAdd: Bool
        /// The values as typed.
        var name = ""
        var device = ""
    }

    struct Step: Sendable {
        var name: String
        var isDone: Bool
        /// What is there, or what to do.
        var summary: String
        var link: Link
        /// The error of the form of this step.
        var problem: String?
        /// Empty for a step without keys, and for a visitor who may not upload them.
        var keys: [Key] = []
        var newApp: NewApp?
        /// The maximum size of an uploaded file, such as `50 MB`. `nil` for a step without an upload.
        var uploadMax: String?
        var testDevices: TestDevices?

        init(_ name: String, isDone: Bool, done: String, open: String, link: Link) {
            self.name = name
            self.isDone = isDone
            summary = isDone ? done : open
            self.link = link
        }
    }

    var steps: [Step]
    var verdict: String
    var colour: String
    /// What a form has just done. `nil` without a form.
    var done: String?
}

/// The result of a form that was refused, for the page that shows it again.
struct SetupRefusal: Sendable {
    enum Part: Hashable, Sendable { case key, app, devices, testDevice }

    var part: Part
    /// The message. `nil` if the answers of APNs say what is wrong.
    var problem: Problem?
    /// The fields as typed.
    var fields: [String: String] = [:]
    var answers: [String] = []
}
