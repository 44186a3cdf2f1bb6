/// `fanfare.yaml`: where things are, and how to reach APNs for each app. Paths are as written, relative ones to the file.
package struct Configuration: Hashable, Sendable {
    /// A path, or a URL that may hold a password: shown as ``StoreAddress`` describes it.
    package var store: String
    package var campaigns: String
    package var templates: String
    package var apps: [App]
    /// Of all apps and runs of one process together; nil: no limit.
    package var pace: Campaign.Pace?
    package var http: HTTP
    package var webhooks: [Webhook]
    /// How long per-token outcomes are kept.
    package var outcomesKept: Duration
    /// Nil: a run needs nobody's approval.
    package var approvals: ApprovalRules?
    /// Nil: nothing waits for a person because it is much.
    package var volumeBrake: VolumeBrake?
    /// When a finished run is no success.
    package var success = SuccessLimits()
    /// The segment of the devices that `test-send` may reach; nil: any.
    package var testDevices: String?
    package var feeds = Feeds()
    package var log = Log()

    package init(store: String, campaigns: String, templates: String, apps: [App] = []) {
        self.store = store
        self.campaigns = campaigns
        self.templates = templates
        self.apps = apps
        http = HTTP()
        webhooks = []
        outcomesKept = .seconds(400 * 86_400)
    }

    /// How much the processes log, and how. An option of a command wins.
    package struct Log: Hashable, Sendable {
        package enum Format: String, Hashable, Sendable, CaseIterable {
            /// A line with the time in front.
            case text
            /// A JSON object per line.
            case json
            /// A line with its priority in front, which journald takes off; journald adds the time.
            case journal
        }

        package enum Level: String, Hashable, Sendable, CaseIterable {
            case error, warning, info, debug
        }

        /// `nil`: `journal` where standard error is the journal, `text` elsewhere.
        package var format: Format?
        /// `nil`: `info` for the daemon and where standard error is the journal, `warning` elsewhere.
        package var level: Level?

        package init(format: Format? = nil, level: Level? = nil) {
            self.format = format
            self.level = level
        }
    }

    /// Where requests go whose address stands in a campaign or template file.
    package struct Feeds: Hashable, Sendable {
        /// Addresses besides the public ones.
        package var allow: [AddressRange]
        /// Whether the environment's proxy is used, which then says what is reached.
        package var proxy: Bool

        package init(allow: [AddressRange] = [], proxy: Bool = false) {
            self.allow = allow
            self.proxy = proxy
        }
    }

    package struct HTTP: Hashable, Sendable {
        package var listen = "127.0.0.1:8787"
        /// Campaign and template files may be written by way of the pages and the API.
        package var editing = false
        package var proxy: Proxy?
        /// `/metrics` names campaigns and topics to every caller, not only to this machine and to token holders.
        package var openMetrics = false
        package init() {}
    }

    /// What is so much that it waits for a person.
    package struct VolumeBrake: Hashable, Sendable {
        /// As much as usual, times this, still goes.
        package var times: Int
        /// Days of fewer pushes than this are never held.
        package var atLeast: Int
        /// Over the reach of the campaign's last finished run; nil: any.
        package var maxGrowthPercent: Double?

        package init(times: Int, atLeast: Int = 1000, maxGrowthPercent: Double? = nil) {
            self.times = times
            self.atLeast = atLeast
            self.maxGrowthPercent = maxGrowthPercent
        }
    }

    /// When a finished run counts as a success.
    package struct SuccessLimits: Hashable, Sendable {
        /// A run that fewer devices accepted is no success; 0: a run that reaches no device is one.
        package var minAccepted: Int
        /// The largest shares of rejected and of unknown deliveries, in percent of those that were sent.
        package var maxRejectedPercent, maxUnknownPercent: Double

        package init(minAccepted: Int = 1, maxRejectedPercent: Double = 50, maxUnknownPercent: Double = 50) {
            self.minAccepted = minAccepted
            self.maxRejectedPercent = maxRejectedPercent
            self.maxUnknownPercent = maxUnknownPercent
        }
    }

    /// A server before ours that signs people in, and says in a header who they are.
    package struct Proxy: Hashable, Sendable {
        /// IP addresses of its connections; the headers of any other are not believed.
        package var addresses: [String]
        package var userHeader: String
        /// Of whoever it names without a role.
        package var role: AccessRole
        /// With a role's word; nil: ``role`` for all.
        package var roleHeader: String?
        /// The operator states that the proxy removes these headers from what its own clients send.
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

    /// An address that is told what becomes of runs.
    package struct Webhook: Hashable, Sendable {
        package var url: String
        /// A file with the key that signs the messages.
        package var secretPath: String
        package var events: [Event]

        package enum Event: String, Hashable, Sendable, CaseIterable {
            case finished
            /// Finished, and no success. A webhook that asks for `finished` alone is told `finished`.
            case unsuccessful
            /// By itself; a person who pauses a run knows it.
            case paused
            /// Paused because it was found unfinished too late. Who asked for `paused` alone is told that.
            case late
            case missed, failed

            /// The most exact word for a run that has come into a state, among those and the words of states.
            package static func word(of state: RunState, _ halt: RunHalt?) -> String {
                switch (state, halt) {
                case (.paused, .late): Event.late.rawValue
                case (.finished, .unsuccessful): Event.unsuccessful.rawValue
                default: state.rawValue
                }
            }

            /// The state that a run has come into.
            package var state: RunState {
                switch self {
                case .finished, .unsuccessful: .finished
                case .paused, .late: .paused
                case .missed: .missed
                case .failed: .failed
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
        /// Lanes per environment.
        package var connections: Int
        package var silentBudget: SilentBudget
        /// Of visible pushes; a push must fit all that name its campaign's class.
        package var frequencyCaps: [FrequencyCap] = []
        /// Of all runs together, whichever processes send them; nil: no limit.
        package var pace: Campaign.Pace?
        /// Nil: Apple's host.
        package var endpoints: Endpoints
        /// The file has one for all apps.
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

    /// What carries the requests.
    package enum Transport: String, Hashable, Sendable, CaseIterable {
        /// Fanfare's own: exact about every stream, and an order of magnitude cheaper. It goes without a proxy.
        case native
        /// libcurl, for the ways to APNs that only it knows: proxies, unusual TLS.
        case curl
    }

    package enum Credential: Hashable, Sendable {
        /// One key for both environments.
        case key(teamID: String, keyID: String, path: String)
        /// A key for each environment, at least for one of them: Apple's newer keys work in one only.
        case keys(teamID: String, [PushEnvironment: KeyFile])
        /// PEM, or PKCS#12 where `certificatePath` ends in `.p12`; then the key may be inside, and what was exported with
        /// a password needs it: it is in a file of its own.
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

extension Configuration.Credential {
    /// Where it gives access; there is no way to an environment without a key.
    package var environments: Set<PushEnvironment> {
        switch self {
        case .key, .certificate: Set(PushEnvironment.allCases)
        case .keys(_, let keys): Set(keys.keys)
        }
    }

    /// As people know it, in an environment where it gives access: `key ABC123DEFG of team DEF123GHIJ`.
    package func name(in environment: PushEnvironment) -> String? {
        switch self {
        case .key(let teamID, let keyID, _): "key \(keyID) of team \(teamID)"
        case .keys(let teamID, let keys): keys[environment].map { "key \($0.id) of team \(teamID)" }
        case .certificate(let path, _, _): "certificate \(path)"
        }
    }
}
