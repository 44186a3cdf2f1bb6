/// What every store must do with the deliveries of a run.
package enum DeliveryQueueContract {
    package static let promises =
        freezing + holdout + oneForAUser + nextDevice + leasing + badges + quietHours + settling + settlingTogether
        + recovering
        + staging
        + stageVerdicts + stageOpens + canaries + seeds + correcting
        + randomWalks
    package static let silentBudgetPromises = silentBudget + silentModel
    package static let frequencyCapPromises = frequencyCaps
}

/// What every store must remember of runs and of what was done about them.
package enum RunLogContract {
    package static let promises =
        runs + unreadable + late + volume + halted + halts + stops + testRuns + audit + clocks + waiting + listings
}

/// What every store must know of devices, segments and audiences.
package enum DeviceRegistryContract {
    package static let promises =
        importing + attributes + pruning + removing + audiences + languages + randomAudiences + analystAudiences + reach
        + segments
        + dynamicSegments + feedback + feedbackSums + bestHours
}

/// What every store must tell of what became of deliveries.
package enum OutcomeReaderContract {
    package static let promises = reports + breakdowns + deliveryPages + timelines
}

/// What every store must remember for a daemon.
package enum DaemonLogContract {
    package static let promises = schedules + feeds + webhooks + webhookLists + heartbeats
}

/// What every store must do to be kept in order.
package enum StoreUpkeepContract {
    package static let promises = outcomePruning + upkeep + reading + restoring
}

/// What every store must do so that all processes send with one provider token.
package enum ProviderTokenLogContract {
    package static let promises = tokens
}

/// What every store must know of who may ask by way of the web.
package enum AccessLogContract {
    package static let promises =
        accessTokens + people + sessions + approvals + signedContents + changes + plans + startValues
}
