/// The columns of a file of devices, for documents.
package enum DeviceColumns {
    /// By name, in the order in which errors list them. `attributes` stands for itself in JSON Lines, and for columns
    /// `attributes.NAME` in CSV.
    package static var all: [(name: String, isRequired: Bool)] {
        DeviceColumn.named.map { ($0.name, DeviceColumn.required.contains($0.column)) }
    }
}
