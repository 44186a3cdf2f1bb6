import Model
package import Store

extension PrunePolicy {
    /// The condition on a device that is gone.
    package var goneCondition: String {
        let gone = "device.status = \(DeviceStatus.gone.code)"
        return isForRemoved ? "\(gone) AND device.status_reason = '\(StoredDevice.removedReason)'" : gone
    }
}

extension StoredDevice {
    /// The assignments that leave no personal data in the row of a removed device.
    package static var removedValues: String {
        (removedColumns.map { "\($0) = NULL" } + ["badge = 0"]).joined(separator: ", ")
    }
}
