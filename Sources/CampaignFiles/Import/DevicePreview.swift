package import Model

/// What an import of a device file would do, read without a store.
package struct DevicePreview: Hashable, Sendable {
    /// A line that cannot be used, with the reason.
    package struct Fault: Hashable, Sendable {
        package var line: Int
        package var reason: String
    }

    /// The columns that the import uses, as named in the file.
    package var columns: [String] = []
    /// The columns that the import leaves out.
    package var unknownColumns: [String] = []
    /// The first devices.
    package var devices: [DeviceRecord] = []
    /// The number of devices.
    package var good = 0
    /// The number of lines that cannot be used.
    package var rejected = 0
    /// The first lines that cannot be used.
    package var faults: [Fault] = []
    /// The topics of the devices, at most 100.
    package var topics: Set<String> = []

    package init() {}
}

extension DeviceFileReader {
    private static let topicsMax = 100

    /// Reads the whole file, and keeps only a sample of it. Unknown columns are left out, as by an import that leaves
    /// them out. Throws ``ImportError`` if the file or its header cannot be read.
    ///
    /// - Parameters:
    ///   - devicesMax: the number of devices in the sample.
    ///   - faultsMax: the number of faults in the sample.
    package static func preview(path: String, devicesMax: Int, faultsMax: Int) throws -> DevicePreview {
        var (cutter, decoder, header) = try DeviceFileReader(path: path, leavesOutUnknown: true).opened()
        var preview = DevicePreview()
        func reject(_ line: Int, _ reason: String) {
            preview.rejected += 1
            if preview.faults.count < faultsMax { preview.faults.append(.init(line: line, reason: reason)) }
        }
        reading: while true {
            switch try cutter.next() {
            case .end: break reading
            case .broken(_, let reason): reject(cutter.line, reason)
            case .record(let range):
                do throws(LineFault) {
                    let device = try decoder.decode(cutter.bytes, range, fields: cutter.fields)
                    // The record's quotes may have swallowed good lines, as in an import.
                    if cutter.spansLines, let odd = decoder.oddValues.first { throw LineFault(reason: odd) }
                    preview.good += 1
                    if preview.devices.count < devicesMax { preview.devices.append(device) }
                    if preview.topics.count < Self.topicsMax { preview.topics.insert(device.topic) }
                } catch {
                    let line = cutter.line
                    if cutter.spansLines { _ = cutter.keepFirstLine() }
                    reject(line, error.reason)
                }
            }
        }
        try cutter.close()
        for name in header ?? decoder.keysRead {
            if DeviceColumn(named: name) == nil {
                preview.unknownColumns.append(String(name.prefix(60)))
            } else {
                preview.columns.append(name)
            }
        }
        return preview
    }
}
