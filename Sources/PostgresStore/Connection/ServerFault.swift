/// An error that the server returned.
///
/// `detail` may quote a row, and with it a token. It is for code only, and no description contains it.
package struct ServerFault: Error, Hashable, Sendable {
    package let sqlstate: String
    package let message: String
    package let detail: String?
    package let constraint: String?
    /// Whether the server ended the connection with this error.
    package let isFatal: Bool

    package init(
        sqlstate: String, message: String, detail: String? = nil, constraint: String? = nil, isFatal: Bool = false
    ) {
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.constraint = constraint
        self.isFatal = isFatal
    }

    /// The meaning of an error to its caller; appendix A of PostgreSQL's manual lists the codes.
    package enum Kind: Hashable, Sendable {
        /// Another transaction won the race. Run the same transaction again.
        case lostRace
        /// Another session held a lock for longer than the wait.
        case lockTimeout
        case cancelled
        case connectionLost
        /// Even the server does not know whether the transaction was committed.
        case outcomeUnknown
        case outOfConnections
        case starting
        case diskFull
        /// Memory or the lock table is full.
        case outOfMemory
        /// The server's machine failed, usually when it read or wrote its disk.
        case systemFault
        case readOnly
        case permission
        case wrongLogin
        case noDatabase
        case undefinedObject
        case duplicateObject
        case uniqueViolation
        case constraintViolation
        /// A pooler passed the transaction to a connection that does not have the prepared statement.
        case lostStatement
        case damaged
        case other
    }

    static let wrongPassword = "28P01"

    package var kind: Kind {
        switch sqlstate {
        case "40001", "40P01": .lostRace
        case "40003": .outcomeUnknown
        case "55P03": .lockTimeout
        case "57014": .cancelled
        case "57P03": .starting
        case "53300": .outOfConnections
        case "53100": .diskFull
        case "25006": .readOnly
        case "42501": .permission
        case "28000", Self.wrongPassword: .wrongLogin
        case "3D000": .noDatabase
        case "42P01", "42703", "42704", "42883", "3F000": .undefinedObject
        case "42P07", "42701", "42710", "42723", "42P06": .duplicateObject
        case "23505": .uniqueViolation
        case "26000", "42P05": .lostStatement
        // One of the server's own files is missing.
        case "58P01", "XX001", "XX002": .damaged
        default: kindOfClass
        }
    }

    private var kindOfClass: Kind {
        switch sqlstate.prefix(2) {
        case "08", "57": .connectionLost
        case "23": .constraintViolation
        case "40": .lostRace
        case "53": .outOfMemory
        case "58": .systemFault
        default: .other
        }
    }
}

extension ServerFault: CustomStringConvertible {
    package var description: String { "\(message) (SQLSTATE \(sqlstate))" }
}
