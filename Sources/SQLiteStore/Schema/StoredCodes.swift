import GRDB
import Store
import Model

extension PushEnvironment {
    /// As stored.
    var code: Int64 { self == .production ? 0 : 1 }

    init(code: Int64) { self = code == 0 ? .production : .sandbox }
}

extension DeviceStatus {
    private static let codes: [DeviceStatus] = [.active, .suspended, .gone]

    var code: Int64 {
        switch self {
        case .active: 0
        case .suspended: 1
        case .gone: 2
        }
    }

    /// The schema admits 0 to 2 only; anything else is not sent to.
    init(code: Int64) {
        self = Self.codes.indices.contains(Int(code)) ? Self.codes[Int(code)] : .gone
    }
}

extension Timestamp {
    init?(stored milliseconds: Int64?) {
        guard let milliseconds else { return nil }
        self.init(milliseconds: milliseconds)
    }
}
