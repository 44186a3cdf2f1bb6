/// An error that the server answered with.
///
/// `detail` may quote a row, and with it a token: it is for programs, and part of no description.
package struct ServerFault: Error, Hashable, Sendable {
    package let sqlstate: String
    package let message: String
    package let detail: String?
    package let constraint: String?
    /// The server ended the connection with it.
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

    /// What an error means to whoever meets it; appendix A of PostgreSQL's manual has the codes.
    package enum Kind: Hashable, Sendable {
        /// Another transaction was faster: the same one is worth running again.
        case lostRace
        /// Somebody held a lock for longer than was waited for.
        case lockTimeout
        case cancelled
        case connectionLost
        case outOfConnections
        case starting
        case diskFull
        /// Memory, or the lock table.
        case outOfMemory
        case readOnly
        case permission
        case wrongLogin
        case noDatabase
        case undefinedObject
        case duplicateObject
        case uniqueViolation
        case constraintViolation
        /// A pooler gave the transaction to a connection that does not know our prepared statement.
        case lostStatement
        case damaged
        case other
    }

    package var kind: Kind {
        switch sqlstate {
        case "40001", "40P01": .lostRace
        case "55P03": .lockTimeout
        case "57014": .cancelled
        case "57P03": .starting
        case "53300": .outOfConnections
        case "53100": .diskFull
        case "53000", "53200", "53400": .outOfMemory
        case "25006": .readOnly
        case "42501": .permission
        case "28000", "28P01": .wrongLogin
        case "3D000": .noDatabase
        case "42P01", "42703", "42704", "42883", "3F000": .undefinedObject
        case "42P07", "42701", "42710", "42723", "42P06": .duplicateObject
        case "23505": .uniqueViolation
        case "26000", "42P05": .lostStatement
        case "XX001", "XX002": .damaged
        default: kindOfClass
        }
    }

    private var kindOfClass: Kind {
        switch sqlstate.prefix(2) {
        case "08", "57": .connectionLost
        case "23": .constraintViolation
        case "40": .lostRace
        case "58": .damaged
        default: .other
        }
    }
}

extension ServerFault: CustomStringConvertible {
    package var description: String { "\(message) (SQLSTATE \(sqlstate))" }
}
