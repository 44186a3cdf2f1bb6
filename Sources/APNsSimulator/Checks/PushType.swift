/// A push type and what its topic must end in (`apns-protocol.md` section 4).
enum PushType: String, CaseIterable {
    case alert, background, location, voip, complication, fileprovider, mdm, liveactivity, pushtotalk, widgets, controls

    var topicSuffix: String {
        switch self {
        case .alert, .background, .mdm: ""
        case .location: ".location-query"
        case .voip: ".voip"
        case .complication: ".complication"
        case .fileprovider: ".pushkit.fileprovider"
        case .liveactivity: ".push-type.liveactivity"
        case .pushtotalk: ".voip-ptt"
        case .widgets: ".push-type.widgets"
        case .controls: ".push-type.controls"
        }
    }

    private static let byBytes = allCases.map { (bytes: Array($0.rawValue.utf8), type: $0) }

    init?(_ text: UnsafeRawBufferPointer) {
        guard let found = Self.byBytes.first(where: { text.isEqual(to: $0.bytes) }) else { return nil }
        self = found.type
    }
}
