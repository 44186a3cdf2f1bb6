/// The migration that stores the entries of leases as they are. A lease is deleted within seconds, and the server took
/// as long to compress its entries as to store them.
///
/// The text is frozen on release.
enum LeaseStorageSchema {
    static let sql = "ALTER TABLE lease ALTER COLUMN entries SET STORAGE EXTERNAL"
}
