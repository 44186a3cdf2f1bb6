/// `fanfare.yaml`: the locations of files, and the access to APNs for each app. Paths are as written. A relative path
/// is relative to the file.
package struct Configuration: Hashable, Sendable {
    /// A path, or a URL that may contain a password. ``StoreAddress`` describes it without the password.
    package var store: String
    package var campaigns: String
    package var templates: String
    package var apps: [App]
    /// The pace of all apps and runs of one process together. `nil` for no limit.
    package var pace: Campaign.Pace?
    package var http: HTTP
    package var webhooks: [Webhook]
    package var retention = Retention()
    /// `nil` if no run needs an approval.
    package var approvals: ApprovalRules?
    /// `nil` if no run waits for a person because of its volume.
    package var volumeBrake: VolumeBrake?
    /// The limits beyond which a finished run counts as unsuccessful.
    package var success = SuccessLimits()
    /// The segment of devices that `test-send` may reach. `nil` for any device.
    package var testDevices: String?
    /// The installation ids of devices for tests, by the names that people gave them. With `approvals`, tests reach no
    /// other devices.
    package var namedTestDevices: [String: String] = [:]
    package var feeds = Feeds()
    package var log = Log()

    package init(store: String, campaigns: String, templates: String, apps: [App] = []) {
        self.store = store
        self.campaigns = campaigns
        self.templates = templates
        self.apps = apps
        http = HTTP()
        webhooks = []
    }

    /// How long the store keeps data.
    package struct Retention: Hashable, Sendable {
        /// Outcomes by device, after the end of their run.
        package var outcomes: Duration
        /// Reports of apps, after their receipt.
        package var events: Duration

        package static let usual: Duration = .seconds(400 * 86_400)

        package init(outcomes: Duration = usual, events: Duration = usual) {
            self.outcomes = outcomes
            self.events = events
        }
    }

    /// The level and format of the processes' logs. A command's option takes precedence.
    package struct Log: Hashable, Sendable {
        package enum Format: String, Hashable, Sendable, CaseIterable {
            /// A line with the time in front.
            case text
            /// A JSON object per line.
            case json
            /// A line that begins with its priority. journald removes the priority and adds the time.
            case journal
        }

        package enum Level: String, Hashable, Sendable, CaseIterable {
            case error, warning, info, debug
        }

        /// `nil` means `journal` if standard error is the journal, otherwise `text`.
        package var format: Format?
        /// `nil` means `info` for the daemon and if standard error is the journal, otherwise `warning`.
        package var level: Level?

        package init(format: Format? = nil, level: Level? = nil) {
            self.format = format
            self.level = level
        }
    }

    /// The allowed destinations of requests whose address comes from a campaign or template file.
    package struct Feeds: Hashable, Sendable {
        /// The allowed addresses besides the public ones.
        package var allow: [AddressRange]
        /// Whether the environment's proxy is used. The proxy then decides which addresses can be reached.
        package var proxy: Bool

        package init(allow: [AddressRange] = [], proxy: Bool = false) {
            self.allow = allow
            self.proxy = proxy
        }
    }

    package struct HTTP: Hashable, Sendable {
        package var listen = "127.0.0.1:8787"
        /// Whether campaign and template files may be written through the pages and the API.
        package var editing = false
        package var proxy: Proxy?
        /// Whether `/metrics` names campaigns and topics to every caller. Otherwise only this machine and token holders
        /// see them.
        package var openMetrics = false
        package init() {}
    }

    /// The volume from which a run waits for a person.
    package struct VolumeBrake: Hashable, Sendable {
        /// The multiple of the usual volume that may still be sent automatically.
        package var times: Int
        /// The daily number of pushes below which nothing is held.
        package var atLeast: Int
        /// The maximum growth over the reach of the campaign's last finished run. `nil` for any growth.
        package var maxGrowthPercent: Double?

        package init(times: Int, atLeast: Int = 1000, maxGrowthPercent: Double? = nil) {
            self.times = times
            self.atLeast = atLeast
            self.maxGrowthPercent = maxGrowthPercent
        }
    }

    /// The limits within which a finished run counts as a success.
    package struct SuccessLimits: Hashable, Sendable {
        /// The minimum number of devices that must accept. With 0, a run that reaches no device is a success.
        package var minAccepted: Int
        /// The largest shares of rejected and of unknown deliveries, in percent of those that were sent.
        package var maxRejectedPercent, maxUnknownPercent: Double

        package init(minAccepted: Int = 1, maxRejectedPercent: Double = 50, maxUnknownPercent: Double = 50) {
            self.minAccepted = minAccepted
            self.maxRejectedPercent = maxRejectedPercent
            self.maxUnknownPercent = maxUnknownPercent
        }
    }

    /// A reverse proxy that signs people in, and names the person of each request in a header.
    package struct Proxy: Hashable, Sendable {
        /// The IP addresses of the proxy's connections. The headers of any other connection are ignored.
        package var addresses: [String]
        package var userHeader: String
        /// The role of a user whom the proxy names without a role.
        package var role: AccessRole
        /// The header with the name of a role. `nil` gives every user ``role``.
        package var roleHeader: String?
        /// Whether the operator states that the proxy removes these headers from its clients' requests.
        package var removesHeaders = false

        package init(
            addresses: [String], userHeader: String = "X-Forwarded-User", role: AccessRole = .viewer,
            roleHeader: String? = nil
        ) {
            self.addresses = addresses
            self.userHeader = userHeader
            self.role = role
            self.roleHeader = roleHeader
        }
    }

    /// An address that receives notifications about runs.
    package struct Webhook: Hashable, Sendable {
        package var url: String
        /// A file with the key that signs the messages.
        package var secretPath: String
        package var events: [Event]

        package enum Event: String, Hashable, Sendable, CaseIterable {
            case finished
            /// Finished without success. A webhook that subscribes only to `finished` receives this event as
            /// `finished`.
            case unsuccessful
            /// Paused automatically. A pause by a person sends no notification.
            case paused
            /// Paused because the run was found unfinished too late. A webhook that subscribes only to `paused`
            /// receives this event as `paused`.
            case late
            case missed, failed
            /// A plan waits for signatures.
            case approvalWanted = "approval_wanted"
            /// A plan has all its signatures.
            case approved

            /// Returns the most specific name for a run's new state: an event of this list, or else the state.
            package static func word(of state: RunState, _ halt: RunHalt?) -> String {
                switch (state, halt) {
                case (.paused, .late): Event.late.rawValue
                case (.finished, .unsuccessful): Event.unsuccessful.rawValue
                default: state.rawValue
                }
            }

            /// The run's new state; `nil` for an event of a plan.
            package var state: RunState? {
                switch self {
                case .finished, .unsuccessful: .finished
                case .paused, .late: .paused
                case .missed: .missed
                case .failed: .failed
                case .approvalWanted, .approved: nil
                }
            }
        }

        package init(url: String, secretPath: String, events: [Event] = Event.allCases) {
            self.url = url
            self.secretPath = secretPath
            self.events = events
        }
    }

    package struct App: Hashable, Sendable {
        package var topic: String
        package var credential: Credential
        /// The number of lanes per environment.
        package var connections: Int
        package var silentBudget: SilentBudget
        /// The caps of visible pushes. A push must fit all caps that name its campaign's class.
        package var frequencyCaps: [FrequencyCap] = []
        /// The feedback of the campaigns whose file does not say. `nil` for none.
        package var feedback: CampaignFeedback?
        /// The pace of all runs together, across all sending processes. `nil` for no limit.
        package var pace: Campaign.Pace?
        /// `nil` for Apple's host.
        package var endpoints: Endpoints
        /// The transport of the requests. The file has one setting for all apps.
        package var transport: Transport

        package init(topic: String, credential: Credential) {
            self.topic = topic
            self.credential = credential
            connections = 4
            silentBudget = SilentBudget()
            endpoints = Endpoints()
            transport = .native
        }
    }

    /// The implementation that carries the requests.
    package enum Transport: String, Hashable, Sendable, CaseIterable {
        /// Fanfare's own HTTP client. It tracks every stream exactly, and is about ten times cheaper than libcurl. It
        /// supports no proxy.
        case native
        /// libcurl, for connections to APNs that only it supports: proxies, unusual TLS.
        case curl
    }

    package enum Credential: Hashable, Sendable {
        /// One key for both environments.
        case key(teamID: String, keyID: String, path: String)
        /// A key for one or each environment. Apple's newer keys work in only one.
        case keys(teamID: String, [PushEnvironment: KeyFile])
        /// PEM, or PKCS#12 if `certificatePath` ends in `.p12`. A PKCS#12 file may contain the key. If it was exported
        /// with a password, a separate file holds the password.
        case certificate(certificatePath: String, privateKeyPath: String?, passwordPath: String? = nil)
    }

    /// A signing key of the team.
    package struct KeyFile: Hashable, Sendable {
        package var id: String
        package var path: String

        package init(id: String, path: String) {
            self.id = id
            self.path = path
        }
    }

    /// Background pushes per device in any rolling window, across all campaigns.
    package struct SilentBudget: Hashable, Sendable, Codable {
        /// The longest window of a budget.
        package static let windowMax: Duration = .seconds(7 * 86_400)

        package var limit: Int
        package var window: Duration

        package init(limit: Int = 3, window: Duration = .seconds(3600)) {
            self.limit = limit
            self.window = window
        }
    }

    /// `host:port` in place of Apple's hosts, for a simulator or a relay, and a CA file (PEM) to trust for them.
    package struct Endpoints: Hashable, Sendable {
        package var production: String?
        package var sandbox: String?
        package var trust: String?

        package init(production: String? = nil, sandbox: String? = nil, trust: String? = nil) {
            self.production = production
            self.sandbox = sandbox
            self.trust = trust
        }
    }
}

extension Configuration {
    /// The feedback of the campaigns whose file does not say, by the topic of their app.
    package var usualFeedback: [String: CampaignFeedback] {
        Dictionary(apps.compactMap { app in app.feedback.map { (app.topic, $0) } }) { first, _ in first }
    }
}

extension Configuration.Credential {
    /// The environments that the credential gives access to. An environment without a key is not accessible.
    package var environments: Set<PushEnvironment> {
        switch self {
        case .key, .certificate: Set(PushEnvironment.allCases)
        case .keys(_, let keys): Set(keys.keys)
        }
    }

    /// Returns the credential's display name in an environment: `key ABC123DEFG of team DEF123GHIJ`. `nil` if the
    /// credential gives no access to it.
    package func name(in environment: PushEnvironment) -> String? {
        switch self {
        case .key(let teamID, let keyID, _): "key \(keyID) of team \(teamID)"
        case .keys(let teamID, let keys): keys[environment].map { "key \($0.id) of team \(teamID)" }
        case .certificate(let path, _, _): "certificate \(path)"
        }
    }
}
