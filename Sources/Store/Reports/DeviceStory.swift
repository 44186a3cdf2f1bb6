package import Model

/// Everything the store knows of one device, as recorded; the engine puts it into words.
package struct DeviceStory: Hashable, Sendable {
    /// One run, and what it did about the device.
    package struct Chapter: Hashable, Sendable {
        package var run: Run
        /// Nil: the device was not in the audience when it was frozen.
        package var delivery: DeviceDelivery?

        package init(run: Run, delivery: DeviceDelivery?) {
            self.run = run
            self.delivery = delivery
        }
    }

    package struct OldToken: Hashable, Sendable {
        package var generation: Int
        package var token: DeviceToken
        package var environment: PushEnvironment
        package var replacedAt: Timestamp

        package init(generation: Int, token: DeviceToken, environment: PushEnvironment, replacedAt: Timestamp) {
            self.generation = generation
            self.token = token
            self.environment = environment
            self.replacedAt = replacedAt
        }
    }

    package var device: StoredDevice
    /// Oldest first.
    package var oldTokens: [OldToken]
    /// Oldest first; of the runs that left the device out, those of its topic.
    package var chapters: [Chapter]
    /// There were more runs, before these.
    package var isCut: Bool
    /// When the outcome of each background push in the silent ledger came; nil while in flight.
    package var silentPushes: [Timestamp?]

    package init(
        device: StoredDevice, oldTokens: [OldToken] = [], chapters: [Chapter] = [], isCut: Bool = false,
        silentPushes: [Timestamp?] = []
    ) {
        self.device = device
        self.oldTokens = oldTokens
        self.chapters = chapters
        self.isCut = isCut
        self.silentPushes = silentPushes
    }
}

extension DeviceStory {
    /// How many of the silent budget's slots are used now, and when the next is free, which may be now.
    package func silentBudget(
        _ budget: Configuration.SilentBudget, now: Timestamp
    ) -> (used: Int, nextSlot: Timestamp?) {
        let opens = now - budget.window
        let used = silentPushes.count { $0.map { $0 > opens } ?? true }
        let decision = SilentSlot.decide(
            ends: silentPushes.map { $0?.milliseconds }, budget: budget, now: now, expiresAt: nil)
        switch decision {
        case .send: return (used, now)
        case .wait(let moment, _): return (used, moment)
        case .suppress: return (used, nil)
        }
    }
}
