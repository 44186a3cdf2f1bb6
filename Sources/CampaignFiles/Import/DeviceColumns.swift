/// The columns of a file of devices, for documents.
package enum DeviceColumns {
    /// The columns by name, in the order in which errors list them. `attributes` means itself in JSON Lines, and the
    /// columns `attributes.NAME` in CSV.
    package static var all: [(name: String, isRequired: Bool)] {
        DeviceColumn.named.map { ($0.name, DeviceColumn.required.contains($0.column)) }
    }
}
