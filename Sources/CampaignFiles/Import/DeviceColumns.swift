/// The columns of a device file, for the generated documentation.
package enum DeviceColumns {
    /// The columns by name, in the order in which errors list them. In CSV, `attributes` also stands for the columns
    /// `attributes.NAME`.
    package static var all: [(name: String, isRequired: Bool)] {
        DeviceColumn.named.map { ($0.name, DeviceColumn.required.contains($0.column)) }
    }
}
