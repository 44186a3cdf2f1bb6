import Foundation
package import Model
import Platform

/// The folder of a store on a server is named after the store, and only the server knows that name. A stop must not
/// wait for the server, so each sender notes its folder under the store's address.
///
/// The state folder holds a file for each address, `store-` and the start of the address' hash, whose content is the
/// folder's name.
extension SenderFolder {
    private static let digits = 16

    /// Notes that senders of this store use this folder. Does nothing for a file, and if the note cannot be written. A
    /// stop then asks the server.
    ///
    /// - Parameter store: the store's address, without its password.
    package func note(store: String) {
        let folder = URL(fileURLWithPath: path)
        let state = folder.deletingLastPathComponent().path
        guard StoreAddress(store).isURL, Self.name(ofStore: store, in: state) != folder.lastPathComponent else {
            return
        }
        try? write(Data("\(folder.lastPathComponent)\n".utf8), to: Self.notePath(store, in: state))
    }

    /// Returns the folder that the last sender of a store used here; `nil` if it is not known.
    ///
    /// - Parameters:
    ///   - address: the store's address, which may contain a password.
    ///   - state: the folder for Fanfare's state on this machine.
    package static func noted(
        store address: String, in state: String, command: String, now: @escaping @Sendable () -> Timestamp
    ) -> SenderFolder? {
        guard let store = StoreAddress(address).postgres?.description, let name = name(ofStore: store, in: state),
            access("\(state)/\(name)", F_OK) == 0
        else { return nil }
        return named(name, in: state, command: command, now: now)
    }

    /// Returns `nil` if the name is not one of a folder of senders.
    package static func named(
        _ name: String, in state: String, command: String, now: @escaping @Sendable () -> Timestamp
    ) -> SenderFolder? {
        guard name.hasPrefix(namePrefix), let high = UInt64(name.dropFirst(namePrefix.count), radix: 16),
            high <= UInt32.max
        else { return nil }
        return SenderFolder(ofStoreElsewhere: (high << 32, 0), in: state, command: command, now: now)
    }

    private static func name(ofStore store: String, in state: String) -> String? {
        guard let text = try? String(contentsOfFile: notePath(store, in: state), encoding: .utf8) else { return nil }
        return text.trimmingCharacters(in: .newlines)
    }

    private static func notePath(_ store: String, in state: String) -> String {
        "\(state)/store-\(Digest.sha256Hex(Array(store.utf8)).prefix(digits))"
    }
}
