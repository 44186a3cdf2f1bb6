/// The range of ids around some devices, for scans over the range in place of lookups one by one.
struct DeviceSpan {
    /// The maximum number of devices read for each device that is meant.
    private static let sparsenessMax = 2

    let first: Int64
    let last: Int64
    private let devices: [Int64]

    /// Returns `nil` if there is no device, or if lookups one by one are cheaper.
    ///
    /// - Parameter devices: the ids, ascending.
    init?(_ devices: [Int64]) {
        guard let first = devices.first, let last = devices.last,
            last - first < Int64(devices.count * Self.sparsenessMax)
        else { return nil }
        (self.first, self.last, self.devices) = (first, last, devices)
    }

    /// A byte for each id of the range: 1 for a device that is meant, 0 for another one.
    var marks: [UInt8] {
        var marks = [UInt8](repeating: 0, count: Int(last - first) + 1)
        for device in devices { marks[Int(device - first)] = 1 }
        return marks
    }
}
