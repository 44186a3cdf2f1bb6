package import Model

/// Some deliveries of a run, in order of device.
package struct DeliveryPage: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        package var outcome: OutcomeRow
        package var isLeased: Bool
        /// The time until which the delivery is put off; `nil` if it is not.
        package var notBefore: Timestamp?

        package init(outcome: OutcomeRow, isLeased: Bool, notBefore: Timestamp?) {
            self.outcome = outcome
            self.isLeased = isLeased
            self.notBefore = notBefore
        }
    }

    package var entries: [Entry]
    /// The cursor of the next page; `nil` if this page was the last.
    package var next: Int64?

    package init(entries: [Entry], next: Int64?) {
        self.entries = entries
        self.next = next
    }
}

/// Some entries of the audit log, newest first.
package struct EventPage: Hashable, Sendable {
    package var events: [StoreEvent]
    /// The cursor of the next page; `nil` if this page was the last.
    package var next: Int64?

    package init(events: [StoreEvent], next: Int64?) {
        self.events = events
        self.next = next
    }
}

/// Some devices, in order of id.
package struct DevicePage: Hashable, Sendable {
    package var devices: [StoredDevice]
    /// The cursor of the next page; `nil` if this page was the last.
    package var next: Int64?

    package init(devices: [StoredDevice], next: Int64?) {
        self.devices = devices
        self.next = next
    }
}

/// The result of the removal of a device by a person.
package enum DeviceRemoval: Hashable, Sendable {
    case deleted
    /// Nothing more is sent to the device, and all that described it is gone. Its row stays while its pushes count, so
    /// that a new registration does not reset its silent budget or its frequency caps.
    case emptied
}
