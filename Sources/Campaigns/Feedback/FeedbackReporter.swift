package import Model
import Platform

/// The caller that sends reports.
package enum FeedbackReporter: Sendable {
    /// A backend. It reports for the apps that it sees.
    case backend(sees: @Sendable (_ topic: String) -> Bool)
    /// An installation with a secret of its own. It reports only for itself.
    case installation(ReportingInstallation)

    /// Whether values of conversions count. A person can read an installation's secret in the app, and report any
    /// value with it.
    var mayGiveValues: Bool {
        switch self {
        case .backend: true
        case .installation: false
        }
    }

    func mayReport(_ push: PushReference, of topic: String) -> Bool {
        switch self {
        case .backend(let sees): sees(topic)
        case .installation(let installation): installation.device == push.device
        }
    }

    func mayReport(installation id: String, of topic: String) -> Bool {
        switch self {
        case .backend(let sees): sees(topic)
        case .installation(let own): own.installationID == id && own.topic == topic
        }
    }

    /// The pushes that the caller may report about, in words.
    var scope: String {
        switch self {
        case .backend: "of this app"
        case .installation: "to this installation"
        }
    }

    func refusal(of topic: String) -> String {
        switch self {
        case .backend: "topic \"\(topic)\" does not belong to the token's app"
        case .installation: "not the installation_id and topic of this secret; send those of the installation itself"
        }
    }
}
