import Model

/// The value of `test_devices`: the name of a segment, or the names of single devices.
struct TestDevices: Hashable, Sendable {
    var segment: String?
    /// Installation ids, by name.
    var named: [String: String] = [:]
}

extension ValueDecoder where Value == TestDevices {
    /// The maximum number of devices, since a page lists them all.
    private static var devicesMax: Int { 100 }
    private static var lengthMax: Int { 200 }

    /// `staff`, or `{Anna's phone: install-17}`.
    static var testDevices: ValueDecoder {
        let segment = ValueDecoder<String>.text
        let device = ValueDecoder<String>.parsed("an installation id", example: "install-17") {
            $0.isEmpty || $0.count > lengthMax ? nil : $0
        }
        let names = ValueShape.map(key: .text(summary: "a name"), device.shape)
        let shape = ValueShape.either([segment.shape, names])
        return ValueDecoder(shape: shape) { field in
            guard case .object = field.node.content else { return segment.read(field).map { TestDevices(segment: $0) } }
            guard let members = field.members(names) else { return nil }
            if members.count > devicesMax {
                field.error(
                    "\(quoted(field.name)) has more than \(devicesMax) names", "use a segment for more devices")
            }
            var devices = TestDevices()
            for member in members.prefix(devicesMax) {
                if member.key.isEmpty || member.key.count > lengthMax || !AccountName.isPlain(member.key) {
                    field.collector.error(
                        "\(quoted(member.key)) is not a valid device name",
                        "write up to \(lengthMax) visible characters, in Unicode's composed form (NFC)",
                        at: member.location)
                }
                let own = Field(name: member.key, node: member.value, collector: field.collector)
                devices.named[member.key] = device.read(own)
            }
            return devices
        }
    }
}
